"""The tasks: node functions, routers and inputs, the same ones for every contender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["END", "State", "Task", "task_of"]

END = "END"
State: TypeAlias = Mapping[str, Any]
Delta: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A graph in plain words. `messages` in a delta is added to the list, every other key replaces."""

    start: dict[str, Any]
    entry: str
    nodes: Mapping[str, Callable[[State], Delta]]
    edges: Mapping[str, str] = field(default_factory=dict)
    routers: Mapping[str, Callable[[State], str]] = field(default_factory=dict)
    #: The node that waits for an approval.
    gate: str | None = None


def ping(state: State) -> Delta:
    return {"count": state["count"] + 1}


def pong(state: State) -> Delta:
    return {"count": state["count"] + 1}


def after_pong(state: State) -> Literal["ping", "END"]:
    return "END" if state["count"] >= state["limit"] else "ping"


def speak(state: State) -> Delta:
    """A message of 200 bytes, no two alike."""
    count = state["count"]
    return {"messages": [{"role": "assistant", "content": f"{count:>10}" + 190 * "x"}], "count": count + 1}


def after_speak(state: State) -> Literal["speak", "END"]:
    return "END" if state["count"] >= state["limit"] else "speak"


def before_publish(state: State) -> Literal["speak", "publish"]:
    return "publish" if state["count"] >= state["limit"] else "speak"


def publish(state: State) -> Delta:
    return {"published": True}


def _blob() -> list[str]:
    """A megabyte of JSON: 10,000 strings, so that a copy of it costs what it costs."""
    return [f"{number:>10}" + 87 * "x" for number in range(10_000)]


def task_of(name: str, steps: int) -> Task:
    """The task of a job, `steps` node runs long."""
    counter = {"count": 0, "limit": steps}
    cycle = Task(counter, "ping", {"ping": ping, "pong": pong}, {"ping": "pong"}, {"pong": after_pong})
    if name == "cycle":
        return cycle
    if name == "blob":
        return Task({**counter, "blob": _blob()}, "ping", cycle.nodes, cycle.edges, cycle.routers)
    talk = {**counter, "messages": []}
    if name == "messages":
        return Task(talk, "speak", {"speak": speak}, {}, {"speak": after_speak})
    nodes = {"speak": speak, "publish": publish}
    return Task(talk, "speak", nodes, {"publish": END}, {"speak": before_publish}, gate="publish")

"""The frozen graph: what is walked. `Plan` is checked once and never changes; the engine only ever sees a plan."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from stategraph.encoding import digest_of
from stategraph.errors import GraphError, RouteError, did_you_mean, shortened
from stategraph.gate import Gate
from stategraph.isolation import lend
from stategraph.node import LONGEST, Node, is_async, takes_state
from stategraph.patch import Patch
from stategraph.router import Router
from stategraph.state import Schema

__all__ = ["END", "Edge", "Plan"]

#: The name of the place where a run is completed.
END = "END"


@dataclass(frozen=True, slots=True)
class Edge:
    """One move that a line of the run can make. `label` is the router's answer, or the verdict."""

    source: str
    target: str
    kind: Literal["plain", "answer", "rejected", "expired"]
    label: str = ""
    #: Found in the router's code, or unknown: not declared by anybody.
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """What a `StateGraph` has been told, in order, unchecked."""

    name: str
    version: str
    max_steps: int
    entry: str | None
    nodes: Sequence[Node]
    edges: Sequence[tuple[str, str]]
    routers: Sequence[Router]
    gates: Sequence[Gate]
    schema: Schema
    checkpointed: bool


class Plan:
    """A checked graph: every name is known, every node is reachable and can reach END.

    Raises `GraphError` with every fault that was found.
    """

    def __init__(self, declared: Declared) -> None:
        self.name = declared.name
        self.version = declared.version
        self.max_steps = declared.max_steps
        self.schema = declared.schema
        self.nodes: Mapping[str, Node] = {node.name: node for node in declared.nodes}
        self.routers: Mapping[str, Router] = {router.source: router for router in declared.routers}
        self.gates: Mapping[str, Gate] = {gate.node: gate for gate in declared.gates}
        self._targets = {source: target for source, target in declared.edges if source not in self.routers}
        faults = list(_name_faults(declared)) or list(_declaration_faults(declared))
        if faults:
            raise GraphError(faults)
        assert declared.entry is not None
        self.entry = declared.entry
        self.edges: tuple[Edge, ...] = tuple(self._edges())
        if faults := list(self._structure_faults()):
            raise GraphError(faults)
        self.fingerprint = self._fingerprint()

    def answers(self, source: str) -> Mapping[str, str]:
        """What the router after a node may answer, and where each answer leads."""
        targets = self.routers[source].targets
        return targets if targets is not None else {name: name for name in (*self.nodes, END)}

    def route(self, source: str, values: Mapping[str, Any], patch: Patch | None = None) -> str:
        """Where a finished node leads from these values and its patch; raises `RouteError`, or whatever its router raises."""
        router = self.routers.get(source)
        if router is None:
            return self._targets.get(source, END)
        view = self.schema.view(values, patch)
        taken_back = lend(view)
        try:
            answer = router.function(view)
        finally:
            del view
            taken_back()
        if isinstance(answer, str):
            targets = router.targets
            target = targets.get(answer) if targets is not None else answer
            if target is not None and (targets is not None or target in self.nodes or target == END):
                return target
        elif inspect.iscoroutine(answer):
            answer.close()  # nobody will await it
        raise RouteError(source, answer, list(self.answers(source)), _fix_of(router, answer, self.nodes))

    def _edges(self) -> Iterator[Edge]:
        for source in self.nodes:
            router = self.routers.get(source)
            if router is None:
                yield Edge(source, self._targets.get(source, END), "plain")
            else:
                inferred = router.known_by in ("inferred", "unknown")
                for answer, target in self.answers(source).items():
                    yield Edge(source, target, "answer", answer, inferred)
            gate = self.gates.get(source)
            if gate and gate.on_reject:
                yield Edge(source, gate.on_reject, "rejected", "rejected")
            if gate and gate.on_expire:
                yield Edge(source, gate.on_expire, "expired", "expired")

    def _structure_faults(self) -> Iterator[str]:
        import networkx  # on first use: it costs more than the rest of the library together

        graph: networkx.DiGraph[str] = networkx.DiGraph()
        graph.add_nodes_from((*self.nodes, END))
        graph.add_edges_from((edge.source, edge.target) for edge in self.edges)
        reached = networkx.descendants(graph, self.entry) | {self.entry}
        ending = networkx.ancestors(graph, END)
        for name in self.nodes:
            if name not in reached:
                yield f"{name!r} can never be reached from {self.entry!r}{self._misspelled(name)}; add an edge to it, or remove it"
            elif name not in ending:
                yield f"{name!r} can never reach END; give its loop a way out (a router that may answer 'END')"

    def _misspelled(self, name: str) -> str:
        """The string in a router's code that was probably meant to be this node."""
        for router in self.routers.values():
            strange = [string for string in router.strings if string not in self.nodes and string != END]
            close = get_close_matches(name, strange, n=1)
            if close:
                return f" (the router after {router.source!r} says {close[0]!r}: did you mean {name!r}?)"
        return ""

    def _fingerprint(self) -> str:
        shape = {
            "name": self.name,
            "version": self.version,
            "entry": self.entry,
            "nodes": sorted(self.nodes),
            "edges": sorted([edge.source, edge.target, edge.kind, edge.label] for edge in self.edges),
            "gates": sorted(self.gates),
        }
        return digest_of(shape)[:32]


def _name_faults(declared: Declared) -> Iterator[str]:
    """Names that are taken twice, reserved or unknown."""
    known = [node.name for node in declared.nodes]
    for name in dict.fromkeys(name for name in known if known.count(name) > 1):
        yield f"node {name!r} is added twice; rename one, or use replace_node({name!r}, ...)"
    mentioned: list[tuple[str, str]] = []
    if declared.entry is not None:
        mentioned.append(("the entry point", declared.entry))
    mentioned += [("an edge's source", source) for source, _ in declared.edges]
    mentioned += [(f"the target of an edge from {source!r}", target) for source, target in declared.edges]
    mentioned += [("a conditional edge's source", router.source) for router in declared.routers]
    for router in declared.routers:
        mentioned += [
            (f"a target of the router after {router.source!r}", name) for name in (router.targets or {}).values()
        ]
    mentioned += [("an interrupt-before point", gate.node) for gate in declared.gates]
    for gate in declared.gates:
        turned = (("on_reject", gate.on_reject), ("on_expire", gate.on_expire))
        mentioned += [(f"{what} of the gate before {gate.node!r}", name) for what, name in turned if name is not None]
    may_end = ("the target", "a target", "on_reject", "on_expire")
    for what, mentioned_name in mentioned:
        if mentioned_name == END:
            if not what.startswith(may_end):
                yield f"{what} is {END!r}, the place where a run is completed; name a node"
        elif mentioned_name not in known:
            yield (
                f"unknown node {mentioned_name!r} ({what}){did_you_mean(mentioned_name, [*known, END])}; "
                f"add it with add_node({mentioned_name!r}, ...)"
            )


def _declaration_faults(declared: Declared) -> Iterator[str]:
    """What is declared twice, not at all, or cannot go together."""
    if not declared.nodes:
        yield "the graph has no nodes; add_node(name, function)"
    if declared.entry is None:
        yield "the graph has no entry point; set_entry_point(name)"
    routed = {router.source for router in declared.routers}
    sources = [router.source for router in declared.routers]
    for source in dict.fromkeys(source for source in sources if sources.count(source) > 1):
        yield f"{source!r} has two routers; one conditional edge per node"
    targets: dict[str, list[str]] = {}
    for source, target in dict.fromkeys(declared.edges):
        targets.setdefault(source, []).append(target)
    for source, several in targets.items():
        if len(several) > 1 and source not in routed:
            yield (
                f"{source!r} forks to {', '.join(map(repr, several))}; forks are not supported in this version: "
                f"choose one with a router, or put the nodes in a row"
            )
    for router in declared.routers:
        if not callable(router.function) or is_async(router.function):
            kind = "async" if callable(router.function) else "no function"
            yield f"the router after {router.source!r} is {kind}; a router is a plain function that answers a name"
        if router.known_by == "unknown" and router.unresolved is not None:
            yield (
                f"the router after {router.source!r} returns {router.unresolved}, which means nothing where it was "
                f"defined, so its answers are unknown; give it targets=[...], or define the type in the module"
            )
        if router.answers_list:
            yield (
                f"the router after {router.source!r} answers a list; chosen forks and maps are not supported in this "
                f"version: answer one name"
            )
        if router.targets is not None and not router.targets:
            yield f"the router after {router.source!r} has no targets; targets=[...] must name at least one node or END"
    yield from _gate_faults(declared)
    for node in declared.nodes:
        yield from _node_faults(node, declared.checkpointed)


def _node_faults(node: Node, checkpointed: bool) -> Iterator[str]:
    if not callable(node.function):
        yield f"{node.name!r} is {shortened(node.function, 60)}, which is no function; a node is a function of the state"
    elif not takes_state(node):
        yield f"{node.name!r} cannot be called with a state; a node is a function (state) or (state, ctx)"
    if node.is_async and node.blocking:
        yield f"{node.name!r} is async, so it does not block; drop blocking=True"
    if node.retry and (misfit := node.retry.misfit()):
        yield f"{node.name!r} has a retry of {misfit}"
    if node.timeout is not None and not 0 < node.timeout <= LONGEST:
        yield f"{node.name!r} has timeout={node.timeout}; timeout=<seconds>, more than 0"
    if node.irreversible and not checkpointed:
        yield f"{node.name!r} is irreversible but the graph has no checkpointer; StateGraph(checkpointer)"
    if node.irreversible and node.retry:
        yield (
            f"{node.name!r} is irreversible and would be retried by itself; after a failure only a person may run it "
            f"again: drop one of the two"
        )
    if node.timeout is not None and not (node.is_async or node.blocking):
        yield (
            f"{node.name!r} has a timeout but blocks the event loop, so nothing can stop it; make it async, or declare "
            f"blocking=True"
        )


def _gate_faults(declared: Declared) -> Iterator[str]:
    gated = [gate.node for gate in declared.gates]
    for name in dict.fromkeys(name for name in gated if gated.count(name) > 1):
        yield f"{name!r} has two interrupt-before points; declare it once"
    for gate in declared.gates:
        if not declared.checkpointed:
            yield f"the gate before {gate.node!r} has no checkpointer to wait in; StateGraph(checkpointer)"
        if gate.approvers == ():
            yield f"the gate before {gate.node!r} has no approvers, so nobody may decide it; name some, or leave them out"
        if gate.approvers and not all(type(name) is str and name for name in gate.approvers):
            yield f"the gate before {gate.node!r} has approvers {gate.approvers!r}; approvers are names, as str"
        if gate.expires_in is not None and not 0 < gate.expires_in <= LONGEST:
            yield f"the gate before {gate.node!r} has expires_in={gate.expires_in}; give it seconds, more than 0"
        if gate.on_expire and not gate.on_reject:
            yield f"the gate before {gate.node!r} has on_expire but no on_reject; say where a rejection leads too"
        if gate.on_expire and gate.expires_in is None:
            yield f"the gate before {gate.node!r} has on_expire but never expires; expires_in=<seconds>"
        if gate.node in (gate.on_reject, gate.on_expire):
            yield f"the gate before {gate.node!r} leads back to itself when it is turned down; name another node or END"


def _fix_of(router: Router, answer: object, nodes: Mapping[str, Node]) -> str:
    if router.known_by == "inferred" and isinstance(answer, str) and (answer in nodes or answer == END):
        return "its targets were inferred from its code; declare them with targets=[...] or a Literal return type"
    if answer is None or answer == "":
        return "answer 'END' to end the run"
    if isinstance(answer, list):
        return "a router answers one name in this version"
    if inspect.isawaitable(answer):
        return "a router is a plain function"
    return ""

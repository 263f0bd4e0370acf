"""A driver that stops for ever at one moment of the run `r`, and says when it is there: somebody kills it, or stops it, then."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from checkpointers.sqlite import SqliteCheckpointer
from stategraph import StateGraphError
from stategraph.checkpoint import Policy
from tests.programs.order import build


def main(path: str, ledger: str, verb: str, where: str, lease: str = "30", policy: Policy = "ask") -> None:
    """`where` is a moment: 'before run pay', 'after effect mail'; there it waits for a line, then goes on."""

    def moment(what: str) -> None:
        if what.startswith(where):
            print(json.dumps(what), flush=True)
            sys.stdin.readline()

    async def drive() -> Any:
        async with SqliteCheckpointer(path) as store:
            graph = build(store, ledger, policy, moment, float(lease))
            if verb == "start":
                events = graph.stream({"amount": 7}, "r")
            elif verb == "approve":
                events = graph.resume("r", "approved", by="ann", decision_id="click")
            else:
                events = graph.recover("r")
            return [event.event_type async for event in events]

    print('"ready"', flush=True)
    try:
        told = asyncio.run(drive())
    except StateGraphError as error:
        told = type(error).__name__
    print(json.dumps(told), flush=True)

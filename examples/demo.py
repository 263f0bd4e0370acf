"""What `make demo` shows: a refund of 900 runs to its gate, waits, and is approved from another process.

Everything it writes is in the folder `demo` of the working directory.
"""

import asyncio
import importlib.util
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from checkpointers import SqliteCheckpointer
from stategraph import Event, StateGraph
from stategraph.events import Interrupted, StateUpdate
from stategraph.render import RenderError

WORKFLOW = Path(__file__).parents[1] / "workflows" / "refund.py"
FOLDER = Path("demo")
RUNS, LEDGER, PICTURE = FOLDER / "runs.db", FOLDER / "ledger.txt", FOLDER / "refund.svg"
RUN_ID = "refund-A-17"
#: The command line as it can be typed here, whether or not it is on the path.
STATEGRAPH = f"{os.path.relpath(sys.executable)} -m stategraph"


def build(store: SqliteCheckpointer) -> StateGraph:
    """The graph of the workflow's file, which is loaded by its path: `workflows` is a folder of files, no package."""
    spec = importlib.util.spec_from_file_location("refund", WORKFLOW)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["refund"] = module
    spec.loader.exec_module(module)
    graph: StateGraph = module.build(store)
    return graph


def begin_anew() -> None:
    """Remove what an earlier demo has left, and nothing else."""
    FOLDER.mkdir(exist_ok=True)
    for name in ("runs.db", "runs.db-wal", "runs.db-shm", LEDGER.name, PICTURE.name):
        (FOLDER / name).unlink(missing_ok=True)
    LEDGER.touch()
    os.environ["REFUND_LEDGER"] = str(LEDGER)  # where the workflow notes a refund; the other process inherits it


def show(event: Event) -> None:
    told = ""
    if isinstance(event, StateUpdate):
        told = json.dumps(event.payload["delta"])
    elif isinstance(event, Interrupted):
        state = event.payload["state"]
        told = f"waits at boundary {event.boundary.id}: order {state['order']}, amount {state['amount']}"
    print(f"  {event.event_type:<12}  {event.node_name:<14}  {told}".rstrip())


async def start() -> str:
    """Run it to its gate; the boundary that it waits at."""
    async with SqliteCheckpointer(RUNS) as store:
        graph = build(store)
        async for event in graph.stream({"order": "A-17", "amount": 900}, run_id=RUN_ID):
            show(event)
        (boundary,) = await graph.boundaries(RUN_ID)
        print(f"  The run is {(await graph.info(RUN_ID)).status}. Refunds so far: {LEDGER.read_text() or 'none'}")
        return boundary.id


def approve(boundary: str, by: str) -> int:
    """Approve the boundary by the command line, in a process of its own; its exit code."""
    typed = ["approve", RUN_ID, "--boundary", boundary, "--by", by]
    typed += ["--store", f"sqlite:{RUNS}", "--file", os.path.relpath(WORKFLOW)]
    print(f"$ {STATEGRAPH} {shlex.join(typed)}", flush=True)
    child = [sys.executable, "-m", "stategraph", *typed, "--plain"]
    return subprocess.run(child, stderr=subprocess.STDOUT, check=False).returncode


async def draw() -> None:
    async with SqliteCheckpointer(RUNS) as store:
        graph = build(store)
        run, history = await graph.info(RUN_ID), await graph.history(RUN_ID)
    try:
        graph.draw(PICTURE, run=run, history=history)
    except RenderError as error:
        print(f"  no picture: {error}")
    else:
        print(f"  {PICTURE}: the way that the run took")
    print(f"  {RUNS}: everything about it; try {STATEGRAPH} show {RUN_ID} --store sqlite:{RUNS}")


def main() -> int:
    begin_anew()
    print(f"1. Process {os.getpid()} starts a refund of 900. Above 500 somebody has to approve it.")
    boundary = asyncio.run(start())

    print("\n2. Another process approves exactly this boundary, and drives the run on.")
    if approve(boundary, "ann") != 0:
        return 1
    print(f"  Refunds now: {LEDGER.read_text().strip()}")

    print("\n3. A second approval, a moment too late, is refused.")
    if approve(boundary, "bob") == 0:
        return 1
    print(f"  Refunds still: {LEDGER.read_text().strip()}")

    print("\n4. What is left:")
    asyncio.run(draw())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Draws docs/refund.svg, and its DOT text, anew: the graph of README.md and a run of it that waits at its gate."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import tempfile
from pathlib import Path

from checkpointers import MemoryCheckpointer
from stategraph import StateGraph

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"


def readme_graph() -> StateGraph:
    """The graph that the first block of README.md builds, in memory."""
    found = re.search(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "refund.py"
        path.write_text(found[1], encoding="utf-8")
        spec = importlib.util.spec_from_file_location("readme", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    graph: StateGraph = module.build(MemoryCheckpointer())
    return graph


async def picture(format: str) -> str:
    """The graph with a run of 900, waiting."""
    graph = readme_graph()
    run = await graph.run({"amount": 900}, run_id="refund-1")
    drawn = graph.draw(format=format, run=run, history=await graph.history(run.run_id))
    assert isinstance(drawn, str)
    return drawn


def main() -> None:
    for name in ("svg", "dot"):
        (DOCS / f"refund.{name}").write_text(asyncio.run(picture(name)), encoding="utf-8")


if __name__ == "__main__":
    main()

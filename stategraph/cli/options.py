"""The options that several commands share, spelled once."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["By", "File", "Input", "Json", "NewFile", "NewRunId", "Note", "Plain", "RunId", "Store", "Traceback"]

RunId = Annotated[str, typer.Argument(metavar="RUN_ID", help="The run's id.")]
File = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", metavar="FILE",
        help="The run's graph: path.py, path.py:name or module:name. Left out, it is looked for by the graph's name "
        "among [tool.stategraph] workflows.",
    ),
]  # fmt: skip
NewFile = Annotated[str, typer.Argument(metavar="FILE", help="The graph: path.py, path.py:name or module:name.")]
Input = Annotated[
    str | None,
    typer.Option("--input", "-i", metavar="JSON", help="The first state: a JSON object, @file or @- (standard input)."),
]
NewRunId = Annotated[
    str | None, typer.Option("--run-id", metavar="ID", help="The new run's id. Left out, one is made.")
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store", "-s", metavar="URL",
        help="Where runs are kept, like sqlite:runs.db. Left out: $STATEGRAPH_STORE, then [tool.stategraph] store, "
        "then sqlite:runs.db.",
    ),
]  # fmt: skip
By = Annotated[str | None, typer.Option("--by", metavar="WHO", help="Who acts. Left out: the operating system's user.")]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why; kept with the act.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Plain = Annotated[bool, typer.Option("--plain", help="Print plain lines, in a terminal too: no display, no colour.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show an error's traceback before its sentence.")]

"""The application: the commands, and the door through which every one of them is called."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Annotated

import typer
import typer.main

from stategraph.cli import (
    cancelling,
    checking,
    deciding,
    doctor,
    drawing,
    driving,
    following,
    forking,
    history,
    keeping,
    listing,
    showing,
    submitting,
    working,
)
from stategraph.cli.refusal import DONE, INTERRUPTED, Refused
from stategraph.cli.session import Session, tell_refusal

__all__ = ["app", "main"]

EPILOG = (
    "Exit codes: 0 done, 1 failed, 2 wrongly typed, 3 waiting for a decision, 4 rejected, 130 interrupted. "
    "FILE is path.py, path.py:name or module:name; it is executed, as Python would."
)

app = typer.Typer(
    name="stategraph",
    help="Run workflows, decide what they wait for, look at them, draw them.",
    epilog=EPILOG,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    driving.run,
    submitting.submit,
    deciding.approve,
    deciding.reject,
    driving.resume,
    driving.recover,
    driving.retry,
    working.worker,
    cancelling.cancel,
    forking.fork,
    listing.runs,
    showing.show,
    history.history,
    following.events,
    drawing.draw,
    keeping.delete,
    keeping.prune,
    keeping.backup,
    keeping.restore,
    keeping.fence,
    checking.check,
    doctor.doctor,
):
    app.command()(command)


def _tell_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"stategraph {version('stategraph')}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _without_command(
    context: typer.Context,
    told: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run workflows, decide what they wait for, look at them, draw them."""
    if context.invoked_subcommand is None:
        sys.stdout.write(f"{context.get_help()}\n")


#: What typer raises for a command line that it does not understand; it exports only a child of it.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


@cache
def _parser() -> Callable[..., object]:
    """The application as it parses: made once, however often it is called."""
    return typer.main.get_command(app)


def main(arguments: Sequence[str]) -> int:
    """Carry out a command line and answer its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that has no ✓ gets its code
    session = Session(as_json="--json" in arguments, traceback="--traceback" in arguments)
    try:
        for argument in arguments:
            argument.encode()
        code = _parser()(list(arguments), prog_name="stategraph", standalone_mode=False)
    except UnicodeEncodeError as error:
        return tell_refusal(Refused(f"the argument {error.object!r} is no UTF-8 text; write it anew"), session)
    except _UsageError as error:
        return tell_refusal(Refused(_sentence(error)), session)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


def _sentence(error: BaseException) -> str:
    """What typer found wrong, and where to read on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "stategraph"
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    return f"{message}; type: {path} --help"

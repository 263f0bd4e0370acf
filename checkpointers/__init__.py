"""The stores: each keeps runs as the protocol of `stategraph.checkpoint` says, and knows nothing of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from checkpointers.encrypted import EncryptedCheckpointer
    from checkpointers.memory import MemoryCheckpointer
    from checkpointers.postgres import PostgresCheckpointer
    from checkpointers.sqlite import SqliteCheckpointer

__all__ = ["EncryptedCheckpointer", "MemoryCheckpointer", "PostgresCheckpointer", "SqliteCheckpointer"]


def __getattr__(name: str) -> Any:
    # On first use: a program that keeps its runs in memory loads no database.
    if name == "MemoryCheckpointer":
        from checkpointers.memory import MemoryCheckpointer

        return MemoryCheckpointer
    if name == "EncryptedCheckpointer":
        from checkpointers.encrypted import EncryptedCheckpointer

        return EncryptedCheckpointer
    if name == "PostgresCheckpointer":
        from checkpointers.postgres import PostgresCheckpointer

        return PostgresCheckpointer
    if name == "SqliteCheckpointer":
        from checkpointers.sqlite import SqliteCheckpointer

        return SqliteCheckpointer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

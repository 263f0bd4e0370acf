"""Workflows as graphs: declared, streamed, stored after every node, paused for a human, drawn."""

from stategraph.checkpoint import Boundary, Checkpoint, Checkpointer, Decision
from stategraph.clock import Clock, ManualClock, SystemClock
from stategraph.context import Context, current_context
from stategraph.errors import (
    CheckpointerError,
    CorruptCheckpoint,
    DecisionRefused,
    DeltaError,
    ForkRefused,
    GraphChangedError,
    GraphError,
    InvalidRunId,
    LeaseHeld,
    LeaseLost,
    PoisonedRun,
    RenderError,
    RouteError,
    RunExists,
    RunNotClaimable,
    StateError,
    StateGraphError,
    StepBudgetExhausted,
    StoreClosed,
    StoreForeign,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
    UnknownRun,
)
from stategraph.events import Cursor, Event, parse_event
from stategraph.graph import StateGraph
from stategraph.node import Retry
from stategraph.patch import DELETE
from stategraph.plan import END, Plan
from stategraph.run import Position, Run
from stategraph.state import AgentState, append, merge
from stategraph.url import open_checkpointer
from stategraph.worker import Worker

__all__ = [
    "DELETE",
    "END",
    "AgentState",
    "Boundary",
    "Checkpoint",
    "Checkpointer",
    "CheckpointerError",
    "Clock",
    "Context",
    "CorruptCheckpoint",
    "Cursor",
    "Decision",
    "DecisionRefused",
    "DeltaError",
    "Event",
    "ForkRefused",
    "GraphChangedError",
    "GraphError",
    "InvalidRunId",
    "LeaseHeld",
    "LeaseLost",
    "ManualClock",
    "Plan",
    "PoisonedRun",
    "Position",
    "RenderError",
    "Retry",
    "RouteError",
    "Run",
    "RunExists",
    "RunNotClaimable",
    "StateError",
    "StateGraph",
    "StateGraphError",
    "StepBudgetExhausted",
    "StoreClosed",
    "StoreForeign",
    "StoreFull",
    "StoreLocked",
    "StoreReadOnly",
    "StoreUnavailable",
    "SystemClock",
    "UnknownRun",
    "Worker",
    "append",
    "current_context",
    "merge",
    "open_checkpointer",
    "parse_event",
]

"""What an installer brings in with a distribution, from the metadata of what is installed here."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import requires

__all__ = ["distributions"]


def distributions(name: str) -> int | None:
    """How many distributions a plain install of one is, itself included; None where pip is not there to read markers."""
    try:
        requirement = import_module("pip._vendor.packaging.requirements").Requirement
    except ImportError:
        return None
    found, queue = set(), [name]
    while queue:
        current = queue.pop().lower().replace("_", "-")
        if current in found:
            continue
        found.add(current)
        wanted = [requirement(line) for line in requires(current) or ()]
        queue += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return len(found)

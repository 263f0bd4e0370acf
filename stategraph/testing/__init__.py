"""The contract of a store, as a suite of tests that the author of one inherits."""

from __future__ import annotations

import pkgutil

try:
    import pytest
except ModuleNotFoundError as missing:
    if missing.name != "pytest":
        raise
    raise ImportError("stategraph.testing needs pytest; pip install 'stategraph[testing]'", name="pytest") from None

# Before they are imported, so that a test that fails shows what it has compared.
pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))

from stategraph.testing.contract import CheckpointerContract  # noqa: E402  # it has to come after
from stategraph.testing.golden import fill  # noqa: E402

__all__ = ["CheckpointerContract", "fill"]

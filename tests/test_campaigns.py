"""A slice of each campaign: nothing is found, and with a promise taken back something is. `make campaign` runs them at length."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.programs.processes import ROOT

START = "import sys; sys.path.append(sys.argv.pop(1)); from tests.campaigns.__main__ import main; sys.exit(main())"

#: The first seed of each slice, and how many cases it has.
SLICES = {
    "lines": (3_000, 16),
    "kills": (1, 40),
    "stops": (1, 30),
    "powercuts": (1, 100),
    "relaxed": (1, 100),
    "full": (1, 50),
    "errors": (1, 150),
    "flips": (1, 150),
    "races": (1, 3),
    "cancels": (1, 100),
    "leavers": (1, 100),
    "clocks": (1, 60),
    "cuts": (1, 20),
}
#: Seeds that find out what `tests.campaigns.broken` has taken back. Kills and flips need too many cases for a test, races and cuts
#: a server each; `python -m tests.campaigns kills --broken` shows them.
FOUND_OUT = {
    "lines": (34, 1),
    "stops": (36, 42),
    "powercuts": (1, 10),
    "relaxed": (1, 30),
    "full": (1, 20),
    "errors": (1, 40),
    "cancels": (1, 20),
    "leavers": (1, 10),
    "clocks": (1, 40),
}


def campaign(name: str, seed: int, cases: int, *more: str) -> subprocess.CompletedProcess[str]:
    """A campaign in a process of its own, which has no thread when it forks its cases."""
    command = [sys.executable, "-P", "-c", START, str(ROOT), name, "--seed", str(seed), "--cases", str(cases), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_of_each_campaign_finds_nothing(name: str) -> None:
    """Zero lost, stuck, doubled, unapproved."""
    seed, cases = SLICES[name]
    done = campaign(name, seed, cases)
    assert done.returncode == 0, done.stdout + done.stderr
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith(f"{name} "))
    assert row[:6] == [name, str(cases), "0", "0", "0", "0"]


@pytest.mark.parametrize("name", FOUND_OUT)
def test_a_campaign_finds_out_what_is_broken(name: str) -> None:
    """A fence, a seal, an fsync, a release, an intent is left out: the campaign fails, and names a seed that repeats it."""
    done = campaign(name, *FOUND_OUT[name], "--broken")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"again with: python -m tests.campaigns {name} --seed " in done.stdout

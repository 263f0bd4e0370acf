"""Runs the cases of a campaign, in a few processes side by side, and adds up what they found."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import NoReturn, Protocol

from tests.campaigns.verdict import KINDS, Case, Exhausted, Found, Wrong

#: Seconds; a case that has not ended by then is stuck.
PATIENCE = 120
#: What a process says last: a child of its own that is still there keeps its pipe open.
END = "end\n"


class Campaign(Protocol):
    """What each file of a campaign has."""

    #: How many cases `make campaign` runs, from seed 1 on.
    MANY: int
    #: How many processes may run cases side by side.
    SHARES: int

    @staticmethod
    def opened(folder: Path) -> AbstractContextManager[Case]:
        """Whatever its cases need, in a folder of its own."""
        ...


@dataclass
class Tally:
    """What the cases of one campaign found."""

    cases: int = 0
    facts: Counter[str] = field(default_factory=Counter)
    #: The seeds that found something, and what.
    wrong: dict[int, list[Wrong]] = field(default_factory=dict)
    seconds: float = 0.0

    def count(self, kind: str) -> int:
        """The cases with something wrong of this kind."""
        return sum(any(wrong.kind == kind for wrong in found) for found in self.wrong.values())

    def row(self, name: str) -> str:
        """The campaign as a line of the table."""
        counts = "".join(f"{self.count(kind):>12,}" for kind in KINDS)
        return f"{name:<12}{self.cases:>10,}{counts}{self.seconds:>10,.0f}"


HEADING = f"{'campaign':<12}{'cases':>10}{''.join(f'{kind:>12}' for kind in KINDS)}{'seconds':>10}"


def run(campaign: Campaign, seeds: Sequence[int], shares: int) -> Tally:
    """All these cases. The processes are forked before anything has a thread, so that they may fork in their turn."""
    began, tally = time.monotonic(), Tally()
    folder = Path(tempfile.mkdtemp(prefix="campaign-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    selector = DefaultSelector()
    try:
        many = max(1, min(shares, campaign.SHARES, len(seeds)))
        children = [_fork(campaign, seeds[share::many], folder / str(share)) for share in range(many)]
        for _, read in children:
            selector.register(os.fdopen(read), EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                line = key.fileobj.readline()  # type: ignore[union-attr]
                if line and line != END:
                    _add(tally, json.loads(line))
                else:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
        for child, _ in children:
            _, ended = os.waitpid(child, 0)
            if ended:
                raise RuntimeError(f"a process of the campaign ended with {ended:#x}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    tally.seconds = time.monotonic() - began
    return tally


def _add(tally: Tally, told: tuple[int, list[list[str]], dict[str, int]]) -> None:
    seed, wrong, facts = told
    tally.cases += 1
    tally.facts.update(facts)
    if wrong:
        tally.wrong[seed] = [Wrong(*each) for each in wrong]  # type: ignore[arg-type]


def _fork(campaign: Campaign, seeds: Iterable[int], folder: Path) -> tuple[int, int]:
    """A process that runs these cases: its id, and where it tells what they found, a line of JSON each."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    os.close(read)
    code = 1
    try:
        folder.mkdir()
        with os.fdopen(write, "w", buffering=1) as told, campaign.opened(folder) as case:
            for seed in seeds:
                try:
                    found = one(case, seed)
                except Exhausted:
                    break
                told.write(json.dumps([seed, found.wrong, found.facts]) + "\n")
            told.write(END)
        code = 0
    except BaseException:  # noqa: BLE001  # the end of this process, whatever it is
        traceback.print_exc()
    finally:
        os._exit(code)


def one(case: Case, seed: int) -> Found:
    """A case. One that raises or takes for ever has left its run stuck."""
    signal.signal(signal.SIGALRM, _stuck)
    signal.alarm(PATIENCE)
    try:
        return case(seed)
    except Exhausted:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, the run was not finished
        place = "".join(traceback.format_exception(error)[-3:])
        return Found([Wrong("stuck", f"{type(error).__name__}: {error}\n{place}")])
    finally:
        signal.alarm(0)


def _stuck(number: int, frame: object) -> NoReturn:
    raise TimeoutError(f"not finished after {PATIENCE} seconds")

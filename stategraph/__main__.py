"""`python -m stategraph`, and what the `stategraph` command calls."""

from __future__ import annotations

import sys

__all__ = ["main"]

#: What the extra `cli` installs.
EXTRA = ("typer", "rich")


def main() -> int:
    """Carry out the command that was typed, and answer its exit code."""
    try:
        from stategraph.cli.app import main as command
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        sys.stderr.write("stategraph: the command line needs typer and rich; pip install 'stategraph[cli]'\n")
        return 2
    return command(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

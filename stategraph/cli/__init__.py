"""The command line: runs are started, decided, looked at and drawn from a terminal. docs/cli.md shows every command."""

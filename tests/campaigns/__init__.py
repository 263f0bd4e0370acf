"""Campaigns: the same run, again and again, with one thing after the other going wrong; `python -m tests.campaigns`.

In every case a run of `tests.programs.order` (or of many racers) is brought to its end, whatever happens to it, and is
judged by a file outside the store in which each node and each effect has left a line: nothing lost, stuck, doubled or
unapproved. A case is determined by its seed.
"""

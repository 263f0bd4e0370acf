"""An explicit-state model of the run protocol as built, its walks on the real stores, and damaged stores to try both on.

- `shape`, `scope`, `rules`: the graph that is walked, how much may go wrong, the protocol's decisions
- `log`, `store`: the fold and the verbs; `step`, `world`: what a transition and a state are
- `driver`, `people`: who moves; `invariants`: what must hold; `search`: every state, shortest traces, a way to an end
- `scopes`, `variants`: what is searched, and what somebody might build instead
- `bench`, `bystanders`: a real store, and other people's runs in it
- `walk`, `probes`, `conform`, `tours`: the model's steps on it, what the model disables, many walks, chosen walks
- `sql`, `damaged`, `mutants`, `hunt`, `equivalents`: stores without one predicate, and whether a walk notices

`python -m tests.model` runs all of it at length: the campaign. docs/reliability.md tells what it has shown.
"""

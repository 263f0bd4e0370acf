"""The catalogue: the workflows that a project's settings list. A stored run's graph is found in it by its name."""

from __future__ import annotations

from dataclasses import dataclass, field

from stategraph.checkpoint import Checkpointer, Head
from stategraph.cli.refusal import Refused
from stategraph.cli.settings import Settings
from stategraph.cli.workflow import load_workflow
from stategraph.errors import GraphError, did_you_mean
from stategraph.graph import StateGraph

__all__ = ["Catalogue"]


@dataclass
class Catalogue:
    """Looks through the settings' workflows, and remembers why those that do not serve do not."""

    settings: Settings
    #: A sentence for each file that could not be loaded.
    broken: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def find(self, head: Head, checkpointer: Checkpointer) -> StateGraph | None:
        """The graph of a stored run, by its name; by its fingerprint too where several share the name."""
        namesake: StateGraph | None = None
        for file in self.settings.files():
            graph = self._load(file, checkpointer)
            if graph is None or graph.name != head.graph:
                continue
            if graph.plan().fingerprint == head.fingerprint:
                return graph
            namesake = namesake or graph
        return namesake

    def missing(self, name: str) -> str:
        """Why no graph of this name was found."""
        if not self.settings.workflows:
            return f"no workflows are listed for graph {name!r} ([tool.stategraph] workflows in a pyproject.toml)"
        broken = f"; not loaded: {'; '.join(self.broken)}" if self.broken else ""
        known = f" ({', '.join(self.names)}{did_you_mean(name, self.names)})" if self.names else ""
        return f"no graph {name!r} among the workflows of {self.settings.folder / 'pyproject.toml'}{known}{broken}"

    def _load(self, file: str, checkpointer: Checkpointer) -> StateGraph | None:
        """The file's graph if it serves: it is whole, and keeps its runs in this store."""
        try:
            graph = load_workflow(file, self.settings.folder).graph(checkpointer)
            graph.plan()
        except (Refused, GraphError) as error:
            self.broken.append(f"{file}: {error}" if isinstance(error, GraphError) else str(error))
            return None
        if graph.checkpointer is not checkpointer:
            self.broken.append(f"{file}: its graph has a store of its own")
            return None
        self.names.append(graph.name)
        return graph

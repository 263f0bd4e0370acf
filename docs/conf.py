"""How Sphinx builds the documentation."""

from importlib.metadata import version as installed_version

project = "stategraph"
author = "the stategraph authors"
release = installed_version("stategraph")

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_show_copyright = False  # LICENSE says it

myst_enable_extensions = ["colon_fence"]  # ::: admonitions, which every other Markdown reader shows as text
myst_heading_anchors = 3  # [words](state.md#reducers) finds its heading

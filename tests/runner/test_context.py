"""Test which engines make trees: what is read and carried file by file is asked of those alone."""

import pytest

from orchestrator.engines.registry import engine_names, load_engine
from orchestrator.runner.context import tree_engine


@pytest.mark.parametrize("name", engine_names())
def test_only_engines_of_paths_make_trees(name: str) -> None:
    found = load_engine(name)
    if found.needs_datasets:
        with pytest.raises(TypeError, match=f"the engine {name} makes no trees"):
            tree_engine(found)
    else:
        assert id(tree_engine(found)) == id(found)

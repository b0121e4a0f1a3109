"""Which engines make trees: what is read and carried file by file is asked of those alone."""

import pytest

from orchestrator.engines.registry import engine, engine_names
from orchestrator.runner.context import of_trees


@pytest.mark.parametrize("name", engine_names())
def test_only_engines_of_paths_make_trees(name: str) -> None:
    found = engine(name)
    if found.wants_datasets:
        with pytest.raises(TypeError, match=f"the engine {name} makes no trees"):
            of_trees(found)
    else:
        assert id(of_trees(found)) == id(found)

"""The registry of engines, read from this folder: one more engine is one more folder."""

import functools
import os
from importlib import import_module

from orchestrator.engines.contract.engine import Engine


@functools.cache
def engine_names() -> tuple[str, ...]:
    """Return the names of all installed engines."""
    here = os.path.dirname(__file__)
    return tuple(sorted(name for name in os.listdir(here) if os.path.isfile(f"{here}/{name}/options.py")))


def load_engine(name: str) -> Engine:
    """Return the engine of that name. Raises: KeyError."""
    if name not in engine_names():
        raise KeyError(name)
    found: Engine = import_module(f"orchestrator.engines.{name}").ENGINE
    return found

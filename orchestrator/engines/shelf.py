"""Finds the engines by looking into this folder: one more engine is one more folder. Reads."""

from importlib import import_module
from pathlib import Path

from orchestrator.engines.contract import Engine


def engine_names() -> tuple[str, ...]:
    """The names of all engines that are there."""
    here = Path(__file__).parent
    return tuple(sorted(folder.name for folder in here.iterdir() if (folder / "plan.py").is_file()))


def engine(name: str) -> Engine:
    """The engine of that name. Raises: KeyError."""
    if name not in engine_names():
        raise KeyError(name)
    found: Engine = import_module(f"orchestrator.engines.{name}").ENGINE
    return found

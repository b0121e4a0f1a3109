"""The zfs engine: datasets and their snapshots, replicated as zfs streams and confirmed by guid.

Why the engine is imported when it is asked for: a gate answers with the commands of this folder alone, and each request starts anew.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.engines.zfs.engine import ENGINE, ZfsEngine

__all__ = ["ENGINE", "ZfsEngine"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(name)
    from orchestrator.engines.zfs import engine

    return getattr(engine, name)

"""rsync: trees of files, copied to dated restore points that share unchanged files, or to a plain mirror.

Why the engine is imported when it is asked for: a gate answers with the commands of this folder alone, and each request starts anew.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.engines.rsync.engine import ENGINE, RsyncEngine

__all__ = ["ENGINE", "RsyncEngine"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(name)
    from orchestrator.engines.rsync import engine

    return getattr(engine, name)

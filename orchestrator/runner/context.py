"""The services that a run works with; `compose` makes them, tests make their own."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.events import RunEvent
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.engine import BareScan, Engine, implements
from orchestrator.history.store import History
from orchestrator.process.executor import Writer
from orchestrator.process.stop import StopRequest

if TYPE_CHECKING:  # a run does not import classes that its job does not use
    from orchestrator.domain.permit import RunPermit
    from orchestrator.engines.contract.restore import FileRestorer
    from orchestrator.engines.contract.snapshots import Snapshotter
    from orchestrator.engines.contract.trees import TreeEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """The identity of our process, so that a later run can find out whether it is still alive."""

    pid: int
    started: int
    boot: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The services of a run. `writer` makes the executor once the lock is held: children inherit the lock."""

    engine: Engine
    snapshotter: "Snapshotter | None"  # for jobs with [snapshots], or whose copies sanoid prunes
    history: History
    writer: Callable[[tuple[int, ...]], Writer]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    chance: Callable[[], float]
    notify: Callable[[RunEvent], None]
    stop: StopRequest
    state: str
    config: str
    hook_folders: tuple[str, ...]
    hook_environment: tuple[tuple[str, str], ...]
    identity: ProcessIdentity
    alive: Callable[[int, int, str], bool]
    files: Callable[[], Engine] | None = None  # the engine that copies files from snapshots
    lock_wait: float = 5.0
    permit: "RunPermit | None" = None  # for jobs that need one
    watched: bool = False  # a person watches the progress, so that sizes are worth a survey

    @property
    def trees(self) -> "TreeEngine":
        """Return the engine, if its copies are trees."""
        return tree_engine(self.engine)


def file_restorer(engine: Engine, point: RestorePoint) -> "FileRestorer":
    """Return the engine, if its points are restored as trees of files. Raises: OrchestratorError that names the alternative."""
    from orchestrator.engines.contract.restore import FileRestorer

    if implements(engine, FileRestorer):
        return engine
    dataset, _, name = point.tree.path.partition("@")
    why, hint = (text.format(tree=point.tree, dataset=dataset, name=name) for text in engine.no_files)
    raise OrchestratorError(why, hint=hint)


def tree_engine(engine: Engine) -> "TreeEngine":
    """Return the engine as a TreeEngine. Raises: TypeError for another engine, a mistake in our own code."""
    from orchestrator.engines.contract.trees import TreeEngine

    if not implements(engine, TreeEngine):
        raise TypeError(f"the engine {engine.name} makes no trees")
    return engine


def begin_bare_look(root: str, young_ns: int) -> BareScan:
    """Begin a look whether any entry of a folder has access lists or attributes. Why the import here: only a first copy asks for it."""
    from orchestrator.verify.tree_attributes import BareTree

    return BareTree(root, young_ns)

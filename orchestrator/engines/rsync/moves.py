"""Search for entries that were moved or renamed in the source: they are gone from one path and there at another."""

from collections import Counter

from orchestrator.domain.job import Job
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.model import RESERVED, RsyncSurvey
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.script_commands import BELOW_ROOT, list_names_command
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

_MOST = 3_000_000  # entries of both sides that are held in memory; with more nothing is recognised
_Key = tuple[bytes, ...]


def find_moved(job: Job, world: RsyncSurvey, reader: Reader) -> Counter[bytes]:
    """Return how many entries of the newest point lie elsewhere in the source now, by top folder; `b""`: in the root itself.

    A file is known again by its size and the time of its last change, to the nanosecond where the target stores that.
    """
    if not world.points:
        return Counter()
    coarse = world.target.coarse
    try:
        then = _list(SourceTree(root=world.points[-1].tree), reader, coarse=coarse, one_filesystem=False)
        now = _list(job.tree, reader, coarse=coarse, one_filesystem=options_of(job).one_file_system)
    except (PipelineFailed, ValueError):
        return Counter()  # the guard then counts all of them as gone
    fresh = Counter(key for path, key in now.items() if path not in then)
    moved: Counter[bytes] = Counter()
    for path, key in then.items():
        if path not in now and fresh[key] > 0:
            fresh[key] -= 1
            moved[job.tree.group_of(path)] += 1
    return moved


def _list(tree: SourceTree, reader: Reader, *, coarse: bool, one_filesystem: bool) -> dict[bytes, _Key]:
    """Return kind, size and time of each entry, by path. Raises: PipelineFailed · ValueError."""
    command = list_names_command(tree, one_filesystem=one_filesystem)
    found: dict[bytes, _Key] = {}
    with reader.records(Pipeline(stages=(command,)), separator=b"\0") as records:
        for record in records:
            path, _, rest = record.partition(b"//")
            path = path.removeprefix(BELOW_ROOT)
            kind, size, time = rest.split(b"\t")
            name = path.rpartition(b"/")[2]
            if name.decode("utf-8", "surrogateescape") in RESERVED:
                continue
            when = time.partition(b".")[0] if coarse else time
            named = kind != b"f" or size == b"0"  # an empty file or a folder is only known by its name, too
            found[path] = (kind, b"" if kind == b"d" else size, when, name if named else b"")
            if len(found) > _MOST:
                raise ValueError("too many entries to hold")
    return found

r"""Processes that read a tree, each its share of it: --workers 4 --root … --manifest … …

They write records that end with NUL, fields with TABs between, a path last: `W` number: of this worker are the next ones · `F` verdict,
detail, path: a finding, at once · `D` number, digest, path: a requested digest · `P` entries, files, bytes: so far · `S` entries, files,
bytes, findings, digests: the sum, as a worker's last record. Without an `S` of each the output does not count.
Why one program that forks: each start of Python takes as long as the reading of a thousand small files.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from orchestrator.process.forks import Turn, run_forked
from orchestrator.verify.check_entry import CheckTask, EntryChecker, EntryVerdict
from orchestrator.verify.digest import FileHasher, OpenTree, hash_maker
from orchestrator.verify.entry import ManifestEntry, Tolerance
from orchestrator.verify.manifest_lines import ManifestDamaged, packed_lines
from orchestrator.verify.partition import worker_share

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    from typing import NoReturn

_REPORT_BYTES = 32 << 20
_REPORT_ENTRIES = 512
_USUAL = "xxh128"


class WorkerReport:
    """Counter of the data read, and writer of the records. `write` takes some of them. `worker`: its number, from 0."""

    def __init__(self, write: Callable[[bytes], object], worker: int = 0) -> None:
        self._write = write
        self._begins = b"W\t%d\0" % worker
        self._held: list[bytes] = []
        self.entries = self.files = self.bytes = self.findings = self.digests = 0
        self._told_entries = self._told_bytes = 0

    def add_bytes(self, count: int) -> None:
        """Count bytes that were read."""
        self.bytes += count
        if self.bytes - self._told_bytes >= _REPORT_BYTES:
            self._progress()

    def add(self, number: int, entry: ManifestEntry, judgement: EntryVerdict) -> None:
        """Record one judged entry."""
        verdict, _, digest = judgement
        self.entries += 1
        self.files += entry[1] == "f"
        if digest:
            self.digests += 1
            self._held.append(b"D\t%d\t%b\t%b\0" % (number, digest.encode(), entry.path))
        if verdict:
            self.findings += 1
            detail = judgement.detail.replace("\t", " ").encode("utf-8", "surrogateescape")
            self._held.append(b"F\t%b\t%b\t%b\0" % (verdict.encode(), detail, entry.path))
            self._flush()
        if self.entries - self._told_entries >= _REPORT_ENTRIES:
            self._progress()

    def end(self) -> None:
        """Write the final record: everything was read."""
        sums = (self.entries, self.files, self.bytes, self.findings, self.digests)
        self._held.append(b"S\t%d\t%d\t%d\t%d\t%d\0" % sums)
        self._flush()

    def _progress(self) -> None:
        self._told_entries, self._told_bytes = self.entries, self.bytes
        self._held.append(b"P\t%d\t%d\t%d\0" % (self.entries, self.files, self.bytes))
        self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, []
        self._write(self._begins + b"".join(held))


def _write_all(out: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(out, rest) :]


def _write_in_turn(out: int, turn: Turn, text: bytes) -> None:
    with turn:
        _write_all(out, text)


def work(options: dict[str, str], worker: int, of: int, write: Callable[[bytes], object]) -> None:
    """Read one worker's share, and report it. Raises: ManifestDamaged · OSError · ValueError."""
    report = WorkerReport(write, worker)
    lines = packed_lines(options["manifest"])
    created, first = _heading(lines)
    task = _task(options, created)
    reader = FileHasher(report.add_bytes, drop="keep-cache" not in options)
    prefix = os.fsencode(options.get("prefix", ""))
    fill = task.mode == "fill"
    share = worker_share(chain(first, lines), worker=worker, of=of, prefix=prefix, unknown_only=fill)
    with OpenTree(os.fsencode(options["root"])) as tree:
        judge = EntryChecker(tree, reader, task).judge
        for block in share:
            for at, entry in block:
                report.add(at, entry, judge(entry))
    report.end()


def _task(options: dict[str, str], created: str) -> CheckTask:
    mode, _, algorithm = options["mode"].partition(":")
    if mode not in ("check", "fill", "digest"):
        raise ValueError(f"no such mode: {mode}")
    if mode != "check":
        hash_maker(algorithm)
    overlooked = options.get("overlook", "").split(",")
    tolerance = Tolerance(
        owner="owner" in overlooked, mode="mode" in overlooked, mtime="mtime" in overlooked,
        grain_ns=int(options.get("grain", "1")), attributes=options.get("attributes", ""),
    )  # fmt: skip
    return CheckTask(mode, algorithm, tolerance, created)


def _heading(lines: Iterator[bytes]) -> tuple[str, list[bytes]]:
    """Return when the manifest was written, as it says so, and the first line after the heading."""
    created = ""
    for line in lines:
        if not line.startswith(b"#"):
            return created, [line]
        if line.startswith(b"# created: "):
            created = line[11:].decode("ascii")
    return created, []


def _work_forked(options: dict[str, str], of: int) -> int:
    """Run several workers as processes and return the exit status."""
    hash_maker(_USUAL)  # imported once for all
    write = partial(_write_in_turn, sys.stdout.fileno(), Turn())
    return run_forked(partial(_tried, partial(work, options, worker, of, write)) for worker in range(of))


def _tried(act: Callable[[], None]) -> int:
    """Return the exit status of an act: 0 when all was read, with or without findings."""
    try:
        act()
    except (ManifestDamaged, OSError, OverflowError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        return 1
    return 0


def main(words: list[str]) -> int:
    """Run the workers and return the exit status."""
    names = [word.removeprefix("--") for word in words[::2]]
    try:
        options = dict(zip(names, words[1::2], strict=True))
        workers = int(options["workers"])
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if workers > 1:
        return _work_forked(options, workers)
    return _tried(partial(work, options, 0, 1, partial(_write_all, sys.stdout.fileno())))


def program() -> "NoReturn":
    """Run the workers that the command line names, and exit at once. Why: no cycle is made, and no cleanup needed."""
    gc.disable()
    status = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(status)

r"""A process that reads its share of a tree: python -m orchestrator.verify.worker --root … --manifest … …

It writes records that end with NUL, fields with TABs between, a path last: `F` verdict, detail, path: a finding, at once · `D`
number, digest, path: a requested digest · `P` entries, files, bytes: so far · `S` entries, files, bytes, findings, digests: the
sum, as the last record. Without an `S` its output does not count.
"""

import os
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from itertools import chain

from orchestrator.verify.check_entry import CheckTask, EntryChecker, EntryVerdict
from orchestrator.verify.digest import FileHasher, OpenTree, hash_maker
from orchestrator.verify.entry import ManifestEntry, Tolerance
from orchestrator.verify.manifest_lines import ManifestDamaged, packed_lines
from orchestrator.verify.partition import worker_share

_REPORT_BYTES = 32 << 20
_REPORT_ENTRIES = 512


class WorkerReport:
    """Counter of the data read, and writer of the records. `write` takes some of them."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
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
        self._write(b"".join(held))


def _write_all(out: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(out, rest) :]


def work(options: dict[str, str], out: int) -> None:
    """Read the share that the options name, and report it. Raises: ManifestDamaged · OSError · ValueError."""
    report = WorkerReport(partial(_write_all, out))
    lines = packed_lines(options["manifest"])
    since_ns, first = _heading(lines)
    task = _task(options, since_ns)
    reader = FileHasher(report.add_bytes, drop="keep-cache" not in options)
    number, _, of = options["share"].partition("/")
    prefix = os.fsencode(options.get("prefix", ""))
    fill = task.mode == "fill"
    share = worker_share(chain(first, lines), worker=int(number) - 1, of=int(of), prefix=prefix, unknown_only=fill)
    with OpenTree(os.fsencode(options["root"])) as tree:
        judge = EntryChecker(tree, reader, task).judge
        for block in share:
            for at, entry in block:
                report.add(at, entry, judge(entry))
    report.end()


def _task(options: dict[str, str], since_ns: int) -> CheckTask:
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
    return CheckTask(mode, algorithm, tolerance, since_ns)


def _heading(lines: Iterator[bytes]) -> tuple[int, list[bytes]]:
    """Return when the manifest was written, and the first line after the heading."""
    since_ns = 0
    for line in lines:
        if not line.startswith(b"#"):
            return since_ns, [line]
        if line.startswith(b"# created: "):
            since_ns = int(datetime.fromisoformat(line[11:].decode()).timestamp() * 1_000_000) * 1_000
    return since_ns, []


def main(words: list[str]) -> int:
    """Run the worker and return the exit status: 0 when all was read, with or without findings."""
    names = [word.removeprefix("--") for word in words[::2]]
    try:
        work(dict(zip(names, words[1::2], strict=True)), sys.stdout.fileno())
    except (ManifestDamaged, OSError, OverflowError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Puts together what the workers tell: progress, findings, digests, and the reading at the end.

Pure.
"""

from collections.abc import Callable, Iterable

from orchestrator.domain.errors import ProofFailed
from orchestrator.domain.point import Finding, Reading, Verdict
from orchestrator.verify.entry import order

_FEW = 1000
Taken = Callable[[int, str, bytes], object]


class Collector:
    """Takes the outputs of all workers of one reading, in pieces as they come.

    `taken` hears of every digest that was asked for: number in the manifest, digest, path.
    """

    def __init__(self, workers: int, *, taken: Taken | None = None, few: int = _FEW) -> None:
        self._rests = [b""] * workers
        self._sofar = [(0, 0, 0)] * workers
        self._ended = [False] * workers
        self._told = [[0, 0] for _ in range(workers)]  # findings and digests that came
        self._taken = taken
        self._few = few
        self._findings: list[Finding] = []
        self._counts: dict[Verdict, int] = {}

    @property
    def entries(self) -> int:
        """Entries judged so far."""
        return sum(entries for entries, _, _ in self._sofar)

    @property
    def bytes_read(self) -> int:
        """Bytes read so far."""
        return sum(size for _, _, size in self._sofar)

    def feed(self, worker: int, chunk: bytes) -> None:
        """Takes a piece of one worker's output; workers count from 0. Raises: ProofFailed for what no worker writes."""
        *records, self._rests[worker] = (self._rests[worker] + chunk).split(b"\0")
        for record in records:
            try:
                self._take(worker, record)
            except (ValueError, UnicodeDecodeError) as error:
                raise ProofFailed(f"a reader told what cannot be understood: {record[:200]!r}") from error

    def add(self, findings: Iterable[Finding]) -> None:
        """Takes findings from elsewhere, such as a comparison of names."""
        for finding in findings:
            self._counts[finding.verdict] = self._counts.get(finding.verdict, 0) + 1
            if len(self._findings) < self._few:
                self._findings.append(finding)

    def reading(self, *, took_s: float, entries: int | None = None) -> Reading:
        """The whole. `entries`: how many must have been judged.

        Raises: ProofFailed when a worker did not come to its end.
        """
        unfinished = self._ended.count(False)
        if unfinished:
            raise ProofFailed(
                f"{unfinished} of {len(self._ended)} readers ended before their work did: nothing is proved",
                cure="run verify again",
            )
        if entries is not None and entries != self.entries:
            raise ProofFailed(f"{self.entries} entries were judged, and there should be {entries}: nothing is proved")
        return Reading(
            entries=self.entries,
            files_read=sum(files for _, files, _ in self._sofar),
            bytes_read=self.bytes_read,
            took_s=took_s,
            counts=tuple((verdict, self._counts[verdict]) for verdict in Verdict if verdict in self._counts),
            findings=tuple(sorted(self._findings, key=lambda finding: order(finding.path))),
        )

    def _take(self, worker: int, record: bytes) -> None:
        what, _, rest = record.partition(b"\t")
        if self._ended[worker]:
            raise ValueError("something after the sum")
        if what == b"D":
            number, digest, path = rest.split(b"\t", 2)
            self._told[worker][1] += 1
            if self._taken:
                self._taken(int(number), digest.decode("ascii"), path)
        elif what == b"F":
            verdict, detail, path = rest.split(b"\t", 2)
            self._told[worker][0] += 1
            found = Finding(
                path=path, verdict=Verdict(verdict.decode()), detail=detail.decode("utf-8", "surrogateescape")
            )
            self.add((found,))
        elif what == b"P":
            self._sofar[worker] = _three(rest)
        elif what == b"S":
            sums, findings, digests = rest.rsplit(b"\t", 2)
            self._sofar[worker] = _three(sums)
            if self._told[worker] != [int(findings), int(digests)]:
                raise ValueError("the sum does not fit what was told")
            self._ended[worker] = True
        else:
            raise ValueError("no such record")


def _three(text: bytes) -> tuple[int, int, int]:
    entries, files, size = text.split(b"\t")
    return int(entries), int(files), int(size)


def collect(outputs: Iterable[Iterable[bytes]], *, took_s: float, extra: Iterable[Finding] = ()) -> Reading:
    """The reading that whole outputs tell, one for each worker. Raises: ProofFailed."""
    whole = [list(output) for output in outputs]
    collector = Collector(len(whole))
    for worker, chunks in enumerate(whole):
        for chunk in chunks:
            collector.feed(worker, chunk)
    collector.add(extra)
    return collector.reading(took_s=took_s)

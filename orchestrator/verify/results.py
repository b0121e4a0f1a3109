"""Collection of worker output: progress, findings, digests, and the final reading."""

from collections import Counter
from collections.abc import Callable, Iterable

from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.point import Finding, Verdict, VerificationResult
from orchestrator.domain.units import show_count
from orchestrator.verify.entry import sort_key

_FEW = 1000
Taken = Callable[[int, str, bytes], object]


class ResultCollector:
    """Receiver of all workers' output for one reading, as it comes; workers count from 0.

    `taken` receives every requested digest: number in the manifest, digest,
    path. `few`: how many findings are kept in memory. `expected`: findings that are none, such as of what no restore brings back.
    """

    def __init__(
        self,
        workers: int,
        *,
        taken: Taken | None = None,
        few: int = _FEW,
        expected: Callable[[Finding], bool] | None = None,
    ) -> None:
        self._expected = expected
        self._rest = b""
        self._worker = 0  # whose records come
        self._sofar = [(0, 0, 0)] * workers
        self._ended = [False] * workers
        self._told = [[0, 0] for _ in range(workers)]  # numbers of findings and digests received
        self._taken = taken
        self._few = few
        self._found = [_WorkerFindings() for _ in range(workers + 1)]  # the last one: from other sources

    @property
    def entries(self) -> int:
        """Return the number of entries judged so far."""
        return sum(entries for entries, _, _ in self._sofar)

    @property
    def bytes_read(self) -> int:
        """Return the number of bytes read so far."""
        return sum(size for _, _, size in self._sofar)

    def feed(self, chunk: bytes) -> None:
        """Process a piece of the output, cut anywhere. Raises: VerificationFailed for output that no worker writes."""
        *records, self._rest = (self._rest + chunk).split(b"\0")
        for record in records:
            try:
                self._take(record)
            except ValueError as error:
                raise VerificationFailed(f"a reader wrote what cannot be understood: {record[:200]!r}") from error

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings from another source, such as a comparison of names."""
        for finding in findings:
            self._note(-1, finding)

    def _note(self, source: int, finding: Finding) -> None:
        if self._expected is None or not self._expected(finding):
            self._found[source].add(finding, self._few)

    def reading(self, *, took_s: float, entries: int | None = None) -> VerificationResult:
        """Return the whole reading. `entries`: the number of entries that must have been judged.

        Raises: VerificationFailed when a worker has not finished.
        """
        unfinished = self._ended.count(False)
        if unfinished:
            raise VerificationFailed(
                f"{unfinished} of {len(self._ended)} readers ended before their work did: nothing is verified",
                hint="run verify again",
            )
        if entries is not None and entries != self.entries:
            raise VerificationFailed(
                f"judged {show_count(self.entries, 'entry', 'entries')}, and there should be {entries}: nothing is verified"
            )
        counts = sum((found.counts for found in self._found), Counter[Verdict]())
        findings = sorted((f for found in self._found for f in found.first), key=lambda finding: sort_key(finding.path))
        return VerificationResult(
            entries=self.entries,
            files_read=sum(files for _, files, _ in self._sofar),
            bytes_read=self.bytes_read,
            took_s=took_s,
            counts=tuple((verdict, counts[verdict]) for verdict in Verdict if verdict in counts),
            findings=tuple(findings[: self._few]),
        )

    def _take(self, record: bytes) -> None:
        what, _, rest = record.partition(b"\t")
        if what == b"W":
            self._worker = range(len(self._ended)).index(int(rest))
            return
        worker = self._worker
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
            self._note(worker, found)
        elif what == b"P":
            self._sofar[worker] = _three(rest)
        elif what == b"S":
            sums, findings, digests = rest.rsplit(b"\t", 2)
            self._sofar[worker] = _three(sums)
            if self._told[worker] != [int(findings), int(digests)]:
                raise ValueError("the sum does not match what was reported")
            self._ended[worker] = True
        else:
            raise ValueError("no such record")


class _WorkerFindings:
    """Findings of one worker: all are counted, the first ones are stored."""

    def __init__(self) -> None:
        self.counts: Counter[Verdict] = Counter()
        self.first: list[Finding] = []

    def add(self, finding: Finding, few: int) -> None:
        self.counts[finding.verdict] += 1
        if len(self.first) < few:
            self.first.append(finding)


def _three(text: bytes) -> tuple[int, int, int]:
    entries, files, size = text.split(b"\t")
    return int(entries), int(files), int(size)

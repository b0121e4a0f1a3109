"""The point before a new one as it was recorded, and the lines of its manifest, read beside the work of other processes."""

from collections.abc import Iterable, Iterator

from orchestrator.domain.authentication import AuthenticationKey
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import ListingRecorder, ManifestRecording
from orchestrator.process.background import BackgroundCall
from orchestrator.verify.carried_lines import CarriedLines, ListedEntries, NotCarried
from orchestrator.verify.manifest import TaggedTexts, copy_manifest

_MOST_KEPT = 16 << 20  # bytes of a manifest that are kept from its first reading for the second


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderPoint:
    """The entries of the point before, and its manifest: `path`: a copy of it that nobody else may change; `texts`: all of it was read once.

    `kept`: what was read, where it is not too much.
    """

    path: str
    entries: ListedEntries
    lines: CarriedLines
    texts: TaggedTexts
    kept: list[bytes] | None

    def read_again(self) -> Iterable[bytes]:
        """Return the manifest's lines, many at once, for a second reading. Raises: VerificationFailed."""
        return TaggedTexts(self.path, None) if self.kept is None else self.kept


class OlderPointReading:
    """A reading of the point before that may begin as soon as its copy is planned. `older`: its manifest.

    Nothing is judged here: neither the manifest's tag, nor what the record says of the filesystems.
    """

    def __init__(self, work: ManifestRecording, older: str, key: AuthenticationKey | None) -> None:
        """Make one, which does nothing yet. `work`: of which `may_carry` is true."""
        if work.recorder is None or work.linked is None:
            raise AssertionError("may_carry has seen them")
        self._recorder: ListingRecorder = work.recorder
        self._point, self._digest, self._key = work.linked.name, work.digest, key
        self.manifest, self._own = older, f"{work.moved}/older-manifest"
        self._call: BackgroundCall[OlderPoint] | None = None
        self._abandoned = False

    def begin(self) -> None:
        """Begin it in a thread."""
        self._call = BackgroundCall(self._read)

    def result(self) -> OlderPoint:
        """Return the point, read now where nobody began it. Raises: NotCarried · VerificationFailed · ValueError · OSError."""
        return self._read() if self._call is None else self._call.result()

    def abandon(self) -> None:
        """End a reading that nobody needs any more."""
        self._abandoned = True
        if self._call is not None:
            with self._call:
                pass

    def _read(self) -> OlderPoint:
        touched = self._recorder.touched()
        digest = copy_manifest(self.manifest, self._own)
        entries = ListedEntries(touched)
        for batch in self._recorder.older_copy(self._point, digest):
            self._require_needed()
            entries.add(batch)
        texts = TaggedTexts(self._own, self._key)
        lines, kept = CarriedLines(touched, self._digest), list[bytes]()
        lines.read(self._kept(texts, kept))
        return OlderPoint(path=self._own, entries=entries, lines=lines, texts=texts, kept=kept or None)

    def _kept(self, texts: Iterable[bytes], kept: list[bytes]) -> Iterator[bytes]:
        """Yield texts, and keep them as long as they are not too many. Raises: NotCarried."""
        size = 0
        for text in texts:
            self._require_needed()
            size += len(text)
            if size > _MOST_KEPT:
                kept.clear()
            else:
                kept.append(text)
            yield text

    def _require_needed(self) -> None:
        if self._abandoned:
            raise NotCarried

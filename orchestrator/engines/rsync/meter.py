"""Reads a copying rsync's output as it comes, and compares its closing account with what lies on the target. Pure."""

from orchestrator.domain.errors import ProofFailed
from orchestrator.engines.contract import LeftOut, Recorded
from orchestrator.engines.rsync.parse import Stats, parse_progress, parse_stats
from orchestrator.engines.rsync.words import CountsEqual

_TAIL = 4096  # the closing account is under 1 KiB


class RsyncMeter:
    """Progress from the --info=progress2 records, the truth from the closing account."""

    def __init__(self) -> None:
        self.seen: int | None = None
        self._tail = b""

    def feed(self, chunk: bytes) -> int | None:
        """Bytes so far, None when this piece does not tell."""
        self._tail = (self._tail + chunk)[-_TAIL:] if len(chunk) < _TAIL else chunk[-_TAIL:]
        done = parse_progress(chunk)
        if done is not None:
            self.seen = done
        return done

    def heard(self, chunk: bytes) -> None:
        """rsync tells everything on its output."""

    def passed(self, count: int) -> int:
        """A lone rsync hands nothing to a second program."""
        return count

    @property
    def expected(self) -> None:
        """The plan knows it from the look."""
        return None

    @property
    def stats(self) -> Stats | None:
        """rsync's closing account, None when it was cut before."""
        return parse_stats(self._tail)

    def moved(self) -> int | None:
        """Bytes that travelled: the literal data of the account; after a cut the last progress seen."""
        stats = self.stats
        return stats.literal if stats else self.seen


def confirm_counts(
    proof: CountsEqual, meters: tuple[RsyncMeter, ...], left_out: tuple[LeftOut, ...], recorded: Recorded
) -> None:
    """Whether the tree holds as many files as rsync's lists named, but for what was left out with a warning.

    What vanished was named and is not there; of what could not be read, the manifest may tell what no list named.
    Raises: ProofFailed. Why no bytes: a source that shrank or grew while it was read makes them differ.
    """
    if not meters:
        return
    accounts = [meter.stats for meter in meters]
    if None in accounts:  # rsync ends well all the same where its output cannot be written
        raise ProofFailed(
            "rsync ended without its closing account, so nothing proves that all was copied",
            cure="see whether the state directory has room; the next run looks again and mends",
        )
    files = sum(account.regular for account in accounts if account)
    vanished = sum(len(each.vanished) for each in left_out)
    unreadable = sum(len(each.unreadable) for each in left_out)
    if not files - vanished <= recorded.files <= files + unreadable:
        raise ProofFailed(
            f"{proof.tree} holds {recorded.files} files, and the source's list named {files}",
            cure="run again: it looks again and mends; if it comes back, check the target's filesystem",
        )

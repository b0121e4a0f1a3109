"""Error classes in one tree; each class states when a retry makes sense.

OrchestratorError
├─ DeclarationError        job files: all mistakes together                       NEVER
├─ NotNow                  lock busy · disk away · a hook said 75                 WHEN_IT_CHANGES
├─ Stopped                 a signal, or the end of the time window                WHEN_IT_CHANGES
├─ OutsideError            holds the command lines, exits, last output, host
│  ├─ ProgramMissing · PermissionDenied · TargetFull · QuotaReached · SourceMissing ASK_A_HUMAN
│  ├─ SourceRenamed       a source that has another name now, known by its guid  ASK_A_HUMAN
│  ├─ RecordsRefused      a sending pool that takes no bookmark and no hold        ASK_A_HUMAN
│  ├─ WritesLost          a disk that did not take what was written               ASK_A_HUMAN
│  ├─ HostUnreachable · Stalled · StreamBroken                                    LATER
│  ├─ BaseGone · TokenStale · NamesExhausted · EntriesRefused · EntryVanished     NOW
│  └─ Unexplained          output that no rule explains yet: verbatim             ONCE
│     └─ UnreadableAnswer  an answer that ended well and is no answer             ONCE
├─ VerificationFailed             a step ended well, its effect is missing               ASK_A_HUMAN
│  └─ ManifestForged       a manifest that lacks this host's tag                  ASK_A_HUMAN
├─ TargetUnable            a target that cannot hold what the source has           ASK_A_HUMAN
├─ LookAgain               a plan that only cleared the way is done                NOW
├─ PartlyRefused           some parts of a job were refused, the rest is done      ASK_A_HUMAN
├─ CentreUnreachable      the fleet's centre gives no answer; no run needs it      LATER
│  └─ CentreFull          it has no room, or this host's quota there is used up    LATER
├─ CentreRefused          the fleet's centre says no                               ASK_A_HUMAN
│  └─ NotMember            it does not let this host in                             ASK_A_HUMAN
└─ HistoryError            cannot remember; refuse to act                         ASK_A_HUMAN
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import printable_word


class RetryClass(StrEnum):
    """Condition under which another attempt makes sense; every attempt starts with a new survey."""

    NEVER = "never"
    WHEN_IT_CHANGES = "when it changes"
    ASK_A_HUMAN = "ask a human"
    LATER = "later"
    NOW = "now"
    ONCE = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Evidence of a failed pipeline: its command lines, exit statuses, last output of each stage, and host."""

    lines: tuple[str, ...]
    exits: tuple[int | None, ...]
    last_output: tuple[str, ...]
    host: str | None = None


_LONGEST_WHY = 4000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMistake:
    """One error in a configuration file. `line` None: it concerns the whole file."""

    file: str
    line: int | None
    key: str
    what: str
    expected: str

    def __str__(self) -> str:
        file = printable_word(self.file)  # a file's name may hold a line end, and this is one line
        where = file if self.line is None else f"{file}:{self.line}"
        key = f"{self.key}: " if self.key else ""
        return f"{where}: {key}{self.what}" + (f", expected {self.expected}" if self.expected else "")


class OrchestratorError(Exception):
    """Base class of all errors. `why`: what happened and what it means; `hint`: what to do about it.

    `copies_seen`: whether the look that ended so had found copies at the target; False: it was the look at the target that failed.
    """

    retry = RetryClass.ASK_A_HUMAN
    copies_seen: bool | None = None

    def __init__(self, why: str, *, hint: str = "") -> None:
        # Output of programs, disks and hosts comes in here, possibly megabytes; the evidence has its own limits.
        why = why if len(why) <= _LONGEST_WHY else why[: _LONGEST_WHY - 1] + "…"
        super().__init__(why)
        self.why = why
        self.hint = hint


@contextmanager
def mark_copies(*, seen: bool) -> Iterator[None]:
    """Mark an error that ends this part of a survey, as `copies_seen` tells it."""
    try:
        yield
    except OrchestratorError as error:
        error.copies_seen = error.copies_seen or seen
        raise


class DeclarationError(OrchestratorError):
    """An error in the configuration; it holds all mistakes together."""

    retry = RetryClass.NEVER

    def __init__(self, mistakes: tuple[ConfigMistake, ...]) -> None:
        super().__init__("")
        self.why = "\n".join(str(mistake) for mistake in mistakes)
        self.args = (self.why,)
        self.mistakes = mistakes


class NotNow(OrchestratorError):
    """A condition that is not met yet; nothing is wrong."""

    retry = RetryClass.WHEN_IT_CHANGES


class Stopped(OrchestratorError):
    """A requested stop; the data stays, and the next run continues from it."""

    retry = RetryClass.WHEN_IT_CHANGES


class OutsideError(OrchestratorError):
    """A failure of an external program."""

    def __init__(self, why: str, *, evidence: Evidence, hint: str = "") -> None:
        super().__init__(why, hint=hint)
        self.evidence = evidence


class ProgramMissing(OutsideError):
    """A program that is not installed, here or on the host."""


class PermissionDenied(OutsideError):
    """A missing permission, here or on the host."""


class TargetFull(OutsideError):
    """A lack of free space (bytes, inodes or quota) on the target."""


class RecordsRefused(OutsideError):
    """A pool that data are sent from, and that takes no bookmark and no hold: it is full, imported read-only or too old."""


class WritesLost(OutsideError):
    """A disk that did not take all that was written to it: the copy is made anew, and would fail there again."""


class QuotaReached(OutsideError):
    """A limit on the space of one dataset of the target; others may have room."""


class SourceMissing(OutsideError):
    """A source that does not exist."""


class SourceRenamed(SourceMissing):
    """A source that has another name now, and is known by its guid."""


class HostUnreachable(OutsideError):
    """A host that does not answer."""

    retry = RetryClass.LATER


class Stalled(OutsideError):
    """A program that made no progress for too long and was ended."""

    retry = RetryClass.LATER


class StreamBroken(OutsideError):
    """A connection or stream that broke off in the middle."""

    retry = RetryClass.LATER


class BaseGone(OutsideError):
    """An increment's base that disappeared after the survey."""

    retry = RetryClass.NOW


class TokenStale(OutsideError):
    """A resume token that is no longer valid."""

    retry = RetryClass.NOW


class NamesExhausted(OutsideError):
    """A file that can have no more names on the target's filesystem: each point gives it as many as it has at the source."""

    retry = RetryClass.NOW


class EntriesRefused(OutsideError):
    """Entries whose name, kind or size the target's filesystem does not take. `entries`: each with the reason; another attempt leaves them out.

    `unnamed`: one of them is named by nothing.
    """

    retry = RetryClass.NOW

    def __init__(
        self, why: str, *, evidence: Evidence, entries: Mapping[bytes, str], unnamed: bool = False, hint: str = ""
    ) -> None:
        super().__init__(why, evidence=evidence, hint=hint)
        self.entries = entries
        self.unnamed = unnamed


class EntryVanished(OutsideError):
    """An entry of the source that went while it was copied, which ended the program; another attempt does without it."""

    retry = RetryClass.NOW


class Unexplained(OutsideError):
    """A failure with output that no rule explains yet."""

    retry = RetryClass.ONCE


class UnreadableAnswer(Unexplained):
    """An answer of a program that no parser understands: garbage, a flood, or a version that is not known yet."""


class VerificationFailed(OrchestratorError):
    """A failed verification: a step ended well, but its expected effect is missing."""


class ManifestForged(VerificationFailed):
    """A manifest that this host wrote and somebody without its key changed: nothing it promises is believed."""


class TargetUnable(OrchestratorError):
    """A target that cannot hold what the source has; `evidence` names each ability that it lacks, with an entry that needs it.

    `copies`: its copies were seen, though they cannot be used so.
    """

    def __init__(self, why: str, *, evidence: tuple[str, ...], hint: str = "", copies: bool = False) -> None:
        super().__init__(why, hint=hint)
        self.evidence = evidence
        self.copies_seen = copies or None


class LookAgain(OrchestratorError):
    """A request for a new survey, not a failure: the obstacle is gone, and the survey decides what follows."""

    retry = RetryClass.NOW


class PartlyRefused(OrchestratorError):
    """A run that did and verified what it could; `evidence` names the refused parts, each with its reason."""

    def __init__(self, why: str, *, evidence: tuple[str, ...], hint: str = "") -> None:
        super().__init__(why, hint=hint)
        self.evidence = evidence


class CentreUnreachable(OrchestratorError):
    """A centre that gives no answer. Runs go on without it, and what it is to know waits in the history."""

    retry = RetryClass.LATER


class CentreFull(CentreUnreachable):
    """A centre without room, or whose quota for this host is used up. It hears what takes no room."""


class CentreRefused(OrchestratorError):
    """A centre that says no: another password, a missing right, a host that left, a schema that is too old."""


class NotMember(CentreRefused):
    """A centre that does not let this host in: it was removed there, invited again, shut out, or never joined."""


class HistoryError(OrchestratorError):
    """A history database that cannot be read or written."""

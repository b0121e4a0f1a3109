"""What can go wrong, as one tree; each error knows when trying again makes sense.

OrchestratorError
├─ DeclarationError        job files: all mistakes together                       NEVER
├─ NotNow                  lock busy · disk away · a hook said 75                 WHEN_IT_CHANGES
├─ Stopped                 a signal, or the end of the time window                WHEN_IT_CHANGES
├─ OutsideError            holds the command lines, exits, last words, host
│  ├─ ProgramMissing · PermissionDenied · TargetFull · SourceMissing              ASK_A_HUMAN
│  ├─ HostUnreachable · Stalled · StreamBroken                                    LATER
│  ├─ BaseGone · TokenStale                                                       NOW
│  └─ Unexplained          last words nobody has met yet: verbatim                ONCE
├─ ProofFailed             it ended well and is not there                         ASK_A_HUMAN
├─ LookAgain               a plan that only cleared the way is done                NOW
├─ PartlyRefused           some parts of a job were refused, the rest is done      ASK_A_HUMAN
└─ HistoryError            cannot remember; refuse to act                         ASK_A_HUMAN
"""

from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass


class Retry(StrEnum):
    """When another attempt makes sense; every attempt looks again first."""

    NEVER = "never"
    WHEN_IT_CHANGES = "when it changes"
    ASK_A_HUMAN = "ask a human"
    LATER = "later"
    NOW = "now"
    ONCE = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a failed pipeline left: its lines, each stage's exit status, the last words of each, and where."""

    lines: tuple[str, ...]
    exits: tuple[int | None, ...]
    last_words: tuple[str, ...]
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One wrong place in a configuration file. `line` None: the file as a whole."""

    file: str
    line: int | None
    key: str
    what: str
    expected: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        key = f"{self.key}: " if self.key else ""
        return f"{where}: {key}{self.what}" + (f", expected {self.expected}" if self.expected else "")


class OrchestratorError(Exception):
    """The root. `why` says what happened and what it means; `cure` what to do about it."""

    retry = Retry.ASK_A_HUMAN

    def __init__(self, why: str, *, cure: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.cure = cure


class DeclarationError(OrchestratorError):
    """The configuration is wrong; holds every mistake at once."""

    retry = Retry.NEVER

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(str(mistake) for mistake in mistakes))
        self.mistakes = mistakes


class NotNow(OrchestratorError):
    """Nothing is wrong; the world is not ready."""

    retry = Retry.WHEN_IT_CHANGES


class Stopped(OrchestratorError):
    """We were asked to stop; what is there stays and the next run goes on from it."""

    retry = Retry.WHEN_IT_CHANGES


class OutsideError(OrchestratorError):
    """A program failed."""

    def __init__(self, why: str, *, evidence: Evidence, cure: str = "") -> None:
        super().__init__(why, cure=cure)
        self.evidence = evidence


class ProgramMissing(OutsideError):
    """A program is not installed, here or on the host."""


class PermissionDenied(OutsideError):
    """We may not, here or on the host."""


class TargetFull(OutsideError):
    """No room (bytes, inodes or quota) on the target."""


class SourceMissing(OutsideError):
    """What should be copied is not there."""


class HostUnreachable(OutsideError):
    """The host does not answer."""

    retry = Retry.LATER


class Stalled(OutsideError):
    """Nothing moved for too long, so we ended it."""

    retry = Retry.LATER


class StreamBroken(OutsideError):
    """It broke off in the middle."""

    retry = Retry.LATER


class BaseGone(OutsideError):
    """What an increment starts from has gone since the look."""

    retry = Retry.NOW


class TokenStale(OutsideError):
    """A resume token no longer fits."""

    retry = Retry.NOW


class Unexplained(OutsideError):
    """Last words that nobody has met yet."""

    retry = Retry.ONCE


class ProofFailed(OrchestratorError):
    """A step ended well and its promise does not hold."""


class LookAgain(OrchestratorError):
    """No failure: what was in the way is gone, and what comes next is for another look to tell."""

    retry = Retry.NOW


class PartlyRefused(OrchestratorError):
    """What could be done is done and proved; `evidence` names the parts that were refused, each with its reason."""

    def __init__(self, why: str, *, evidence: tuple[str, ...], cure: str = "") -> None:
        super().__init__(why, cure=cure)
        self.evidence = evidence


class HistoryError(OrchestratorError):
    """The history cannot be read or written."""

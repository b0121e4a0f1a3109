"""Translation of a failed command or stream: what happened, what it means, what to do.

`zfs receive` always fails with 1, so only its messages differ; the table in `messages` explains them. A sender that dies ends
its receiver, which then reports an incomplete stream, and the other way round: so the messages of all programs are read
together, the one to blame first. Names in quotes are ignored: a snapshot may be called "out of space".
"""

import re
from collections.abc import Iterator

from orchestrator.domain.answers import too_much
from orchestrator.domain.errors import (
    Evidence,
    NotNow,
    OrchestratorError,
    PermissionDenied,
    Stalled,
    Stopped,
    Unexplained,
)
from orchestrator.domain.failure_table import WHOLE_OUTPUT, find_failure, first_line, hint_of, whole_lines
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.hint_phrases import GOES_ON, LOOKS_AGAIN
from orchestrator.engines.zfs.errors.messages import ERROR_RULES
from orchestrator.process.pipeline import PipelineFailed, PipelineResult, StopReason

_TOKEN = re.compile(r"\b1-[0-9a-f]{1,16}-[0-9a-f]{1,16}-[0-9a-f]{16,}")
_QUOTED = re.compile(r"'[^'\n]*'")
_SIZES = re.compile(r"^(size|full|incremental)\t.*\n?", re.MULTILINE)  # the sender's report, no error
_NO_POOL = re.compile(r"no such pool")
# zfs names the action that failed, and its permission has the same name.
_DENIED = re.compile(
    r"cannot (?:create )?(bookmark|create|destroy|hold|mount|receive|release|rename|rollback|send)\b[^\n]*permission denied"
)


def explain(broken: PipelineFailed) -> OrchestratorError:
    """Return the error for a failed pipeline. Raises nothing."""
    result, evidence = broken.result, without_tokens(broken.evidence)
    if result.stopped is not None:
        return _stopped(result.stopped, evidence)
    said = _SIZES.sub("", "\n".join(_in_order(result, evidence)))
    plain = _QUOTED.sub(lambda quoted: "'" + "x" * (len(quoted[0]) - 2) + "'", said)
    if missing := _NO_POOL.search(plain):
        return NotNow(
            f"a pool is not imported ({whole_lines(said, missing.span())})", hint="plug it in, or `zpool import` it"
        )
    codes = {_as_a_shell(code) for code in result.exits if code}
    if fits := find_failure(ERROR_RULES, plain, codes=codes):
        row, line = fits.row, whole_lines(said, fits.at) if fits.at else first_line(said)
        lacks = _DENIED.search(plain) if row.error is PermissionDenied else None
        why = f"{row.why}: it lacks `{lacks[1]}`" if lacks else row.why
        return row.error(f"{why} ({line})" if line else why, evidence=evidence, hint=hint_of(row, said))
    return Unexplained(
        f"zfs ended with {_explain_words(result)}: {first_line(said) or 'no words'}",
        evidence=evidence,
        hint=WHOLE_OUTPUT,
    )


def without_tokens(evidence: Evidence) -> Evidence:
    """Return the evidence without resume tokens, as anyone with a token can request the rest of the stream."""
    return replace(
        evidence,
        lines=tuple(map(redact, evidence.lines)),
        last_output=tuple(map(redact, evidence.last_output)),
    )


def redact(text: str) -> str:
    """Return the text without resume tokens."""
    return _TOKEN.sub("(token)", text)


def _stopped(reason: StopReason, evidence: Evidence) -> OrchestratorError:
    pool = "`zpool status` on both sides shows whether a pool is suspended; "
    where = f" on {evidence.host}" if evidence.host else ""
    if reason is StopReason.STALLED:
        why = f"nothing moved for too long{where.replace(' on ', ' to or from ')}, so the stream was ended"
        return Stalled(why, evidence=evidence, hint=pool + GOES_ON)
    if reason is StopReason.TIMED_OUT:
        why = f"zfs{where} did not answer in time"
        return Stalled(why, evidence=evidence, hint=pool + LOOKS_AGAIN)
    if reason is StopReason.FLOODED:
        return too_much("zfs", evidence, "of very many datasets: name one further down as `source`, in several jobs")
    return Stopped("the run was asked to stop")


def _in_order(result: PipelineResult, evidence: Evidence) -> Iterator[str]:
    """Yield the messages of the programs, the one to blame first."""
    blamed = result.culprit
    if blamed is not None and blamed < len(evidence.last_output):
        yield evidence.last_output[blamed]
    yield from (words for index, words in enumerate(evidence.last_output) if index != blamed)


def _as_a_shell(code: int) -> int:
    return code if code > 0 else 128 - code


def _explain_words(result: PipelineResult) -> str:
    blamed = result.exits[result.culprit] if result.culprit is not None else None
    return "an unknown status" if blamed is None else str(_as_a_shell(blamed))

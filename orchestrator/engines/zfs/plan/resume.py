"""The decision to resume an interrupted receive, or why not. A token covers one snapshot; the rest is sent later.

Why: ZFS finds a token's snapshots by guid, the base also as a bookmark, so renamed ones resume. A receive that can never resume
is discarded and reported; one that is not ours is not touched, and refused.
"""

import re
from zlib import crc32

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import show_size
from orchestrator.engines.zfs.model import Dataset, ResumedSend, ResumeToken, SendFlags, Snapshot
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.increments import CommonSnapshot

ABORT = "abort"  # allowed: discard any remains of an interrupted receive
MOST_RUNS = 3
_ATTEMPTS = re.compile(r"([0-9a-f]{8}|-) (\d{1,20}) (\d{1,20})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAttempts:
    """Failed resumes of one token. `runs`: how many in a row; `anew`: guid of the snapshot that was restarted for it."""

    mark: str = "-"  # a hash of the token: anyone with the token itself can request the rest of the stream
    runs: int = 0
    anew: int = 0

    def __str__(self) -> str:
        return f"{self.mark} {self.runs} {self.anew}"

    def is_stuck(self, token: ResumeToken) -> bool:
        """Return whether runs tried to resume from the token often enough."""
        return self.mark == _mark(token) and self.runs >= MOST_RUNS


def attempts_key(dataset: str) -> str:
    """Return the key of a dataset's record, by the dataset's name below the root."""
    return f"zfs-cut {dataset}"


def parse_attempts(text: str) -> ResumeAttempts | None:
    """Parse a record; None: there is none, or it has an unknown form."""
    found = _ATTEMPTS.fullmatch(text)
    return ResumeAttempts(mark=found[1], runs=int(found[2]), anew=int(found[3])) if found else None


def next_attempt(before: ResumeAttempts | None, token: ResumeToken) -> ResumeAttempts:
    """Return the record for one more failed run from the token; the token shows its progress."""
    again = before is not None and before.mark == _mark(token)
    anew = token.to_guid if before is not None and before.anew == token.to_guid else 0
    return ResumeAttempts(mark=_mark(token), runs=before.runs + 1 if before is not None and again else 1, anew=anew)


def _mark(token: ResumeToken) -> str:
    return f"{crc32(token.text.encode()):08x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleReceive:
    """An interrupted receive that can never be resumed. `told`: the record of its removal."""

    why: str
    told: str = ""


ResumeDecision = ResumedSend | StaleReceive | Refusal | None


def judge_resume(case: PlanContext, name: str, base: CommonSnapshot | None, flags: SendFlags) -> ResumeDecision:
    """Decide on the remains of an interrupted receive; None: there are none. `flags`: those of the chain to be sent."""
    source, target = case.world.source.datasets[name], case.world.target.datasets[name]
    if target.token is None:
        return (
            StaleReceive(why="a receive was cut there, and it left nothing that can go on") if target.partial else None
        )
    if ABORT in case.requested.allowed:
        return StaleReceive(why="thrown away, as --allow abort asks")
    token = case.world.tokens.get(target.token)
    if token is None:
        return StaleReceive(why="the resume token cannot be read: it is damaged, or of a ZFS we do not know")
    snapshot = next((one for one in reversed(source.snapshots) if one.guid == token.to_guid), None)
    if snapshot is None:
        return _snapshot_gone(case, name, token)
    stale = _why_stale(case, target, token, snapshot, base) or _why_other(source, target, token, flags)
    return StaleReceive(why=stale) if stale else _stuck(case, name, token) or _going_on(case, name, token, snapshot)


def _stuck(case: PlanContext, name: str, token: ResumeToken) -> StaleReceive | Refusal | None:
    """Return a verdict when several runs received no further byte of the same stream: restart once, then refuse."""
    tried = _attempts(case, name)
    if tried is None or not tried.is_stuck(token):
        return None
    told = f"{MOST_RUNS} runs in a row continued from it and received no byte more"
    if tried.anew != token.to_guid:
        return StaleReceive(why=told, told=str(ResumeAttempts(anew=token.to_guid)))
    return Refusal(
        why=f"the cut send of {token.to_name} to {case.target_name(name)} does not get any further",
        evidence=(
            f"{told}, and so did those after it was started from scratch",
            f"{show_size(token.bytes)} of it are there",
        ),
        hint=f"look at both pools (zpool status) and the link; to start from scratch once more: {case.command} --allow {ABORT}",
        guard=ABORT,
    )


def _going_on(case: PlanContext, name: str, token: ResumeToken, snapshot: Snapshot) -> ResumedSend:
    why = f"a send of {snapshot.mark} (guid {snapshot.guid}) was cut; {show_size(token.bytes)} of it are there"
    first = not case.world.target.datasets[name].snapshots
    vain = str(next_attempt(_attempts(case, name), token))
    return ResumedSend(dataset=name, token=token, snapshot=snapshot, first=first, why=why, vain=vain)


def _snapshot_gone(case: PlanContext, name: str, token: ResumeToken) -> StaleReceive | Refusal:
    """Return the verdict on a token whose snapshot the source's dataset lacks.

    It was destroyed, is in another dataset, or was never ours.
    """
    told = f"{token.to_name} (guid {token.to_guid})"
    if any(one.guid == token.to_guid for one in case.world.target.datasets[name].snapshots):
        return StaleReceive(why=f"the cut send of {told} is on the target whole by now")
    if owner_name := case.owners.get(token.to_guid):
        return StaleReceive(why=f"{told}, which a cut send was about, now belongs to {case.source_name(owner_name)}")
    if is_foreign(case, name, token):
        return _refuse_foreign(case, name, told)
    return StaleReceive(why=f"{told}, which a cut send was about, is gone from the source")


def is_foreign(case: PlanContext, name: str, token: ResumeToken) -> bool:
    """Return whether nothing links a token to this dataset: no known snapshot, name or base."""
    if token.to_guid in case.owners or token.to_name.partition("@")[0] == case.source_name(name):
        return False
    return token.from_guid is None or not (token.from_guid in case.owners or token.from_guid in case.bookmarked)


def _refuse_foreign(case: PlanContext, name: str, told: str) -> Refusal:
    whole = case.target_name(name)
    return Refusal(
        why=f"a cut receive of something else lies in {whole}",
        evidence=(f"its token is for {told}", f"{case.source_name(name)} never held that, as far as can be seen"),
        hint=f"let the job that began it end it; or throw it away: poolferry run {case.job.name} --allow {ABORT}",
        guard=ABORT,
    )


def _why_stale(
    case: PlanContext, target: Dataset, token: ResumeToken, snapshot: Snapshot, base: CommonSnapshot | None
) -> str | None:
    """Return why the stream does not fit the present snapshots of both sides; None: it fits."""
    told = f"the cut send of {snapshot.mark} (guid {snapshot.guid})"
    if any(one.guid == token.to_guid for one in target.snapshots):
        return f"{told} is on the target whole by now"
    if not case.fits(snapshot):
        return f"{told} is about a snapshot that [zfs] snapshots and skip-snapshots leave out today"
    if base is not None and token.from_guid != base.there.guid:
        start = f"snapshot {token.from_guid}" if token.from_guid is not None else "nothing"
        return f"{told} starts from {start}, and the target's newest is {base.there.mark} (guid {base.there.guid})"
    start_known = token.from_guid is None or token.from_guid in case.owners or token.from_guid in case.bookmarked
    if base is None and not start_known:
        return f"{told} starts from snapshot {token.from_guid}, of which the source holds neither snapshot nor bookmark"
    return None


def _why_other(source: Dataset, target: Dataset, token: ResumeToken, flags: SendFlags) -> str | None:
    """Return why the stream's kind differs from the chain's; for unencrypted data, raw or not is the same."""
    if source.encrypted and token.flags.raw != flags.raw:
        was, now = ("raw", "not raw") if token.flags.raw else ("not raw", "raw")
        return f"the cut send was {was}, and this chain is {now}"
    if token.flags.embedded and not token.flags.raw and target.encrypted:
        return "the cut send holds embedded blocks, which an encrypted dataset cannot receive"
    return None


def _attempts(case: PlanContext, name: str) -> ResumeAttempts | None:
    """Return the record of earlier attempts to resume an interrupted receive into a dataset."""
    return parse_attempts(case.requested.remembered.get(attempts_key(name), ""))

"""Tags of manifests: made with this host's key when a manifest is written, judged whenever one is read.

History records for each job and place which key was in use since when, so that a removed tag is noticed.
"""

import contextlib
import json
from datetime import datetime

from orchestrator.domain.authentication import (
    AuthenticationKey,
    Authenticity,
    ManifestJudgement,
    expected_key,
    judge_manifest,
)
from orchestrator.domain.errors import ManifestForged, OrchestratorError, ProofFailed
from orchestrator.domain.names import POINT_NAME, parse_point_name, show_name
from orchestrator.domain.place import FOUND, Location
from orchestrator.domain.point import Finding, RestorePoint, Verdict, VerificationResult
from orchestrator.history.authentication_key import obtain_key, read_key
from orchestrator.history.store import WHOLE
from orchestrator.process.executor import Writer
from orchestrator.runner.problems import note_bad_manifest
from orchestrator.runner.run_recorder import RunRecorder, run_small
from orchestrator.verify.manifest import read_tag

_USES = "manifest keys on "  # before a place's name, a small fact of a job: ids of keys, each with its first use


def is_own_note(manifest: Location, journal: RunRecorder) -> bool:
    """Return True for a manifest in our state directory: only we write there, so it needs no tag."""
    return manifest.host is None and manifest.path.startswith(f"{journal.tools.state}/")


def key_for(manifest: Location, point: str, journal: RunRecorder) -> AuthenticationKey | None:
    """Return the key that tags a new manifest, created when first needed; None: it gets no tag. Raises: OrchestratorError."""
    return None if is_own_note(manifest, journal) else obtain_key(journal.tools.state, _made_at(point, journal.now))


def note_use(key: AuthenticationKey, point: str, journal: RunRecorder) -> None:
    """Record that the manifest of the point was tagged with the key, if that is the key's first use at this place."""
    uses = _uses(journal)
    if not uses or uses[-1][0] != key.id:
        told = [(each, since.isoformat()) for each, since in (*uses, (key.id, _made_at(point, journal.now)))]
        journal.tools.history.remember(journal.job.name, _USES + journal.job.target.name, json.dumps(told))


def _uses(journal: RunRecorder) -> tuple[tuple[str, datetime], ...]:
    text = journal.tools.history.recall(journal.job.name, _USES + journal.job.target.name)
    return tuple((key, datetime.fromisoformat(since)) for key, since in json.loads(text or "[]"))


def _made_at(point: str, now: datetime) -> datetime:
    """Return the time from which a point of that name counts. Why its name: it is exact to the second, as is `taken`."""
    return min(parse_point_name(point), now) if POINT_NAME.fullmatch(point) else now


def judge(point: RestorePoint, manifest: str, journal: RunRecorder) -> ManifestJudgement:
    """Judge the tag of a point's manifest. `manifest`: its local path. Raises: OrchestratorError · OSError."""
    if point.manifest is None or is_own_note(point.manifest, journal):
        return ManifestJudgement(shown=Authenticity.EARLIER)
    key = read_key(journal.tools.state)
    tag = read_tag(manifest, key)
    # A mirror's time is that of its file, which shows nothing; only its last manifest exists.
    made = point.taken if POINT_NAME.fullmatch(point.name) else None
    expected = expected_key(_uses(journal), made)
    here = journal.job.target.name != FOUND  # a tag is never required on points of other machines
    if expected is None and here and key is not None and made is not None and made >= key.made and not tag.key:
        expected = key.id  # the history was lost, but the key was kept
    return judge_manifest(tag, job=journal.job.name, point=point.name, key=key.id if key else None, expected=expected)


def require_authentic(point: RestorePoint, manifest: str, journal: RunRecorder, writer: Writer, notes: str) -> None:
    """Judge a manifest before anything is compared with it; a forged one is recorded as damage of its whole point.

    Raises: ManifestForged · OrchestratorError.
    """
    try:
        judged = judge(point, manifest, journal)
    except ProofFailed as error:
        note_bad_manifest(journal, point, error.why)
        with contextlib.suppress(OrchestratorError):  # such as a target that is read-only: history knows it
            store_damage_note(point, [b""], journal, writer, notes)
        hint = f"`poolferry run {journal.job.name}` makes a new point and links nothing to this one; {error.hint}"
        raise ProofFailed(error.why, hint=hint) from error
    if judged.shown is Authenticity.OTHER_KEY:
        journal.warn(judged.says)
    if judged.shown is Authenticity.FORGED:
        _note_forgery(point, judged, journal, writer, notes)
        raise ManifestForged(judged.says, hint=forgery_hint(journal))


def forgery_sentence(point: RestorePoint, manifest: str, journal: RunRecorder) -> str:
    """Return why a manifest cannot verify data restored from its point; empty: it can. Raises: OrchestratorError."""
    judged = judge(point, manifest, journal)
    if judged.says:
        journal.warn(judged.says)
    return judged.says if judged.shown is Authenticity.FORGED else ""


def forgery_hint(journal: RunRecorder) -> str:
    """Return the hint after a forgery."""
    return (
        f"find out who can write to {journal.job.target.location} (an earlier version of poolferry that ran meanwhile sets no tag "
        f"either); `poolferry run {journal.job.name}` copies all of it again from the source, into a new point"
    )


def _note_forgery(
    point: RestorePoint, judged: ManifestJudgement, journal: RunRecorder, writer: Writer, notes: str
) -> None:
    """Record the verdict in history, and note beside the point that none of its files may be linked into another."""
    finding = Finding(path=b"", verdict=Verdict.EDITED, detail=judged.says)
    reading = VerificationResult(
        entries=0, files_read=0, bytes_read=0, took_s=0, counts=((Verdict.EDITED, 1),), findings=(finding,)
    )
    tools, job = journal.tools, journal.job
    tools.history.verified(
        job.name, job.target.name, point.name, reading=reading, now=journal.now, scope=WHOLE, forged=True
    )
    store_damage_note(point, [b""], journal, writer, notes)  # the root's own name: everything below it


def store_damage_note(
    point: RestorePoint, damaged: list[bytes], journal: RunRecorder, writer: Writer, notes: str
) -> None:
    """Note the damaged entries beside a point, so that the next run copies them again and links none of them; none: no note."""
    note = journal.tools.trees.damage_note(point)
    if note is None:
        return
    if not damaged:
        run_small(journal.tools.trees.discard(note), journal, writer)
        return
    local = f"{notes}/damage-note"
    with open(local, "wb") as file:
        file.writelines(show_name(path).encode() + b"\n" for path in damaged)
    run_small(journal.tools.trees.store(local, note), journal, writer)

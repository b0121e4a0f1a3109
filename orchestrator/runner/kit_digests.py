"""The digests of the files beside copies of files, under this host's key: written before each of them, and compared with them.

A recovery page is followed by hand, on the day that all else is lost, and the history is taken over by a new machine: neither may be
believed when a bit of it flipped, or somebody else wrote it.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestrator.domain.answers import NOT_READ, parse_json
from orchestrator.domain.authentication import USES, parse_uses
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.hashes import sha256_for
from orchestrator.domain.kit import (
    DIGESTS,
    HISTORY,
    KIT_FILES,
    KitDigests,
    damaged_kit_files,
    is_sealed,
    parse_digests,
    seal_digests,
)
from orchestrator.domain.names import KEY_FILE
from orchestrator.domain.problem import ProblemType
from orchestrator.history.authentication_key import obtain_key, read_key
from orchestrator.process.executor import Writer
from orchestrator.runner.run_recorder import RunRecorder, fetch_file, store_file
from orchestrator.trees.beneath import Folder

if TYPE_CHECKING:
    from orchestrator.domain.place import Location

OWN_FOLDER = ".poolferry"
_EARLIER = "history-before-"  # begins the name of a history that a host had before it lost it
COPIED = (
    "history copied to:"  # before a place's name, a small fact of a job: the history beside its copies is of this one
)
_SEALED = "kit digests at "  # before a place's name, a small fact of a job: the key, and the digests by name
_AT = "at"  # beside those names: where the place was, as another path may be another disk
_LARGEST_SUMS = 64 << 10  # bytes
_MOST_OLDER = 100  # digests of a file, while no store of it goes well
_SMALL = 4 << 20  # bytes; of a larger history a run compares nothing, which would take longer than the run
_LARGEST_FILE = 64 << 20  # bytes; a larger page or configuration is none of ours, and may have no end
_LARGEST_HISTORY = 1 << 30  # bytes; or as large as this host's own allows


def file_digest(path: str) -> str:
    """Return the digest of a local file. Raises: OSError."""
    with open(path, "rb") as file:
        return _digest_of(file.fileno(), os.fstat(file.fileno()).st_size)


def seal_files(journal: RunRecorder, writer: Writer, files: Mapping[str, str]) -> None:
    """Store the digests of files that are stored next, with those of the others there. `files`: by name. Raises: OrchestratorError · OSError.

    Why before: a run that is cut leaves a file as it was, and that is no damage.
    """
    job, tools = journal.job, journal.tools
    key, known = obtain_key(tools.state, journal.now), _known_digests(journal) | _told_there(journal, writer)
    first = not known or _is_of_earlier(journal, key.id)
    for name, digest in files.items():
        older = [each for each in known.get(name, ()) if each != digest]
        known[name] = (*older[:1], *older[1:][-_MOST_OLDER:], digest)
    digests = KitDigests(
        files={name: each[-1] for name, each in known.items()},
        before={name: each[:-1] for name, each in known.items() if each[1:]},
    )
    folder = f"{tools.state}/notes/kit-{job.name}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{folder}/{DIGESTS}", "w", encoding="utf-8") as file:
        file.write(seal_digests(digests, job.identity, key))
    if not first:
        _remember(journal, key.id, known)  # what fails may have been stored all the same
    store_file(file.name, _beside(journal, DIGESTS), journal, writer)
    if first:  # only now there are any there, or any of this key
        _remember(journal, key.id, known)


def _told_there(journal: RunRecorder, writer: Writer) -> dict[str, tuple[str, ...]]:
    """Return what the digests at a target of this machine say, by name; where this history was put back, they know more than it does.

    A far one costs a login, and is not asked.
    """
    if journal.job.target.location.host is not None or (found := _read_digests(journal, writer, "")) is None:
        return {}
    return {name: (*found.before.get(name, ()), true) for name, true in found.files.items()}


def note_stored(journal: RunRecorder, names: tuple[str, ...]) -> None:
    """Record that these files lie there as the newest digests say: no older one may lie there any more."""
    key, known = obtain_key(journal.tools.state, journal.now), _known_digests(journal)
    if any(known[name][1:] for name in names if name in known):
        _remember(journal, key.id, known | {name: known[name][-1:] for name in names if name in known})


def _remember(journal: RunRecorder, key: str, known: Mapping[str, tuple[str, ...]]) -> None:
    text = json.dumps([key, dict(known) | {_AT: str(journal.job.target.location)}])
    journal.tools.history.remember(journal.job.name, _SEALED + journal.job.target.name, text)


def require_key(journal: RunRecorder) -> None:
    """Check that this host's key can be read, if there is one: else no point is tagged, and nothing beside the copies is stored.

    Why before anything is decided: where nothing changed, a run would end well each night, and nothing more could be verified.
    One that is gone is told by each run until a new one is made: of what was tagged with it, nothing can be shown to be ours.
    Raises: OrchestratorError.
    """
    job, tools = journal.job, journal.tools
    if not job.target.location.path.startswith("/") or tools.engine.stays or read_key(tools.state) is not None:
        return
    if uses := tools.history.fact(job.name, USES + job.target.name, parse_uses):
        journal.warn(
            f"this host's key {uses[-1][0]} is gone: {tools.state}/{KEY_FILE} is not there, and manifests of {job.name} were tagged with it. Put the "
            "file back from a backup of the state directory; else the next copy makes a new key, and older points can be compared with their "
            "manifests, but nobody can tell any more whether those are ours"
        )


def keep_earlier_history(journal: RunRecorder) -> str | None:
    """Give the history beside copies here another name where it is none of this one; return where it is kept.

    Why: where this host lost its history, that one is all that is left of the past, and the copy of the new one would replace it.
    A far one costs a login, and is not asked. Raises: OSError.
    """
    beside = _beside(journal, "")
    if knows_history_beside(journal):
        return None
    kept = f"{_EARLIER}{journal.now:%Y-%m-%dT%H%M%SZ}.sqlite"
    with Folder.ours_at(beside.path) as folder, suppress(FileNotFoundError):
        folder.rename(HISTORY, kept)
        return f"{beside.path}/{kept}"
    return None


def knows_history_beside(journal: RunRecorder) -> bool:
    """Return whether the history beside copies here is a copy of this one, or there is none that could be kept.

    It is where this one remembers that, or a run of the job that ended well; of several disks one that made a point on this one.
    """
    job, history = journal.job, journal.tools.history
    place = job.target.location
    if place.host is not None or not place.path.startswith("/") or history.recall(job.name, COPIED + job.target.name):
        return True
    if not history.views.has_run_before(journal.run, job.name):
        return False
    return not job.target.rotation or any(
        point.run and point.place == job.target.name for point in history.views.points(job.name)
    )


def earlier_histories(target: "Location") -> tuple[str, ...]:
    """Return the histories that were kept so beside the copies of this machine, oldest first; none where that cannot be seen."""
    if target.host is not None or not target.path.startswith("/"):
        return ()
    with suppress(OSError), Folder.ours_at(f"{target.path}/{OWN_FOLDER}") as folder:
        return tuple(
            f"{target.path}/{OWN_FOLDER}/{name}" for name in sorted(os.listdir(folder.fd)) if name.startswith(_EARLIER)
        )
    return ()


def find_damaged(journal: RunRecorder, writer: Writer, notes: str, *, all_of_it: bool) -> tuple[str, ...]:
    """Return the files beside the copies that are not as they were written; none where no digests were. Raises: OrchestratorError.

    `all_of_it`: also those that take long, and those of a host.
    """
    known = _known_digests(journal)
    if not all_of_it and (not known or journal.job.target.location.host is not None):
        return ()
    try:
        digests = _read_digests(journal, writer, notes)
    except OrchestratorError:
        if known:
            raise
        return ()  # nothing says that there are any
    if digests is None:
        return (DIGESTS,) if known else ()
    if journal.job.target.location.host is not None:
        return damaged_kit_files(digests, _digests_there(journal, writer, notes, digests))
    limits = dict.fromkeys(digests.files, _LARGEST_FILE) | {HISTORY: _history_limit(journal) if all_of_it else _SMALL}
    here = _digests_here(_beside(journal, "").path, digests, limits, all_of_it=all_of_it)
    return damaged_kit_files(digests, here)


def _history_limit(journal: RunRecorder) -> int:
    """Return how large the history beside the copies can be: a file that somebody else put there may have no end."""
    return max(_LARGEST_HISTORY, 4 * journal.tools.history.size)


def _known_digests(journal: RunRecorder) -> dict[str, tuple[str, ...]]:
    """Return the digests of what this host stored beside the copies at the place, by name: all that may lie there, the newest last."""
    try:
        _, files = parse_json(
            journal.tools.history.recall(journal.job.name, _SEALED + journal.job.target.name) or "null"
        )
        if files.get(_AT) not in (None, str(journal.job.target.location)):
            return {}
        sets = {name: each for name, each in files.items() if name in KIT_FILES}
        return {str(name): tuple(str(digest) for digest in each) for name, each in sets.items() if each}
    except NOT_READ:
        return {}


def _read_digests(journal: RunRecorder, writer: Writer, notes: str) -> KitDigests | None:
    """Return the digests that lie there; None for what this host did not write, and where none lie there."""
    try:
        if journal.job.target.location.host is not None:
            os.makedirs(notes, mode=0o700, exist_ok=True)
            with open(fetch_file(_beside(journal, DIGESTS), journal, writer, notes), "rb") as file:
                text = file.read(_LARGEST_SUMS)
        else:
            with Folder(_beside(journal, "").path) as folder, open(folder.open_file(DIGESTS), "rb") as file:
                text = file.read(_LARGEST_SUMS)
        digests = parse_digests(text.decode("ascii"))
    except (OSError, *NOT_READ):
        return None
    key = read_key(journal.tools.state)
    # A key that was lost and made anew judges nothing; the digests do.
    return (
        digests
        if key is None or is_sealed(digests, journal.job.identity, key) or _is_of_earlier(journal, key.id)
        else None
    )


def _is_of_earlier(journal: RunRecorder, key: str) -> bool:
    """Return whether the digests there were sealed with an earlier key of this host."""
    used, _ = parse_json(journal.tools.history.recall(journal.job.name, _SEALED + journal.job.target.name) or "[0, 0]")
    return str(used) != key


def _digests_here(
    path: str, digests: KitDigests, limits: Mapping[str, int], *, all_of_it: bool
) -> dict[str, str | None]:
    """Return the digest of each file; None for one that is not there, cannot be read, is none of ours, or is too large."""
    found: dict[str, str | None] = {}
    with Folder(path) as folder:
        for name in digests.files:
            try:
                with open(folder.open_file(name), "rb") as file:
                    small = os.fstat(file.fileno()).st_size <= limits[name]
                    if small or name != HISTORY or all_of_it:
                        found[name] = _digest_of(file.fileno(), limits[name]) if small else None
            except OSError:
                found[name] = None
    return found


def _digests_there(journal: RunRecorder, writer: Writer, notes: str, digests: KitDigests) -> dict[str, str | None]:
    from orchestrator.runner.far_digests import digests_there

    names = f"{notes}/kit-names"
    with open(names, "wb") as file:
        file.writelines(name.encode() + b"\0" for name in digests.files)
    told = digests_there(
        _beside(journal, ""),
        names,
        "sha256",
        journal,
        writer,
        notes,
        size=len(digests.files) * _LARGEST_FILE,
        partial_is_well=True,
    )
    found = {path.decode(): digest.removeprefix("sha256:") for path, digest in told}
    return {name: found.get(name) for name in digests.files}


def _beside(journal: RunRecorder, name: str) -> "Location":
    return journal.job.target.location / (f"{OWN_FOLDER}/{name}" if name else OWN_FOLDER)


def _digest_of(descriptor: int, limit: int) -> str:
    """Return the digest of a file, of at most so many bytes: it may grow while it is read."""
    made, left = sha256_for(min(limit, os.fstat(descriptor).st_size)), limit
    while left and (chunk := os.read(descriptor, min(left, 1 << 20))):
        made.update(chunk)
        left -= len(chunk)
    return made.hexdigest()


def damage_sentence(journal: RunRecorder, names: tuple[str, ...]) -> str:
    """Return what is wrong beside the copies."""
    are = "is" if len(names) == 1 else "are"
    return f"{', '.join(names)} beside the copies in {journal.job.target.location} {are} not as this host wrote {'it' if len(names) == 1 else 'them'}"


def record_damage_beside(journal: RunRecorder, writer: Writer, notes: str) -> str:
    """Look at all that lies beside the copies; record and return what is damaged. Empty: nothing is, or nothing can be told."""
    job, history = journal.job, journal.tools.history
    if journal.tools.engine.stays:
        return ""  # what lies beside these copies is the sender's
    try:
        names = find_damaged(journal, writer, notes, all_of_it=True)
    except (OrchestratorError, OSError) as error:
        journal.warn(f"the files beside the copies could not be compared with their digests: {error}")
        return ""
    if not names:
        history.problems.end(
            job.name, job.target.name, (ProblemType.KIT,), "", by=f"run {journal.run} found it sound", now=journal.now
        )
        return ""
    return record_damage(journal, names)


def record_damage(journal: RunRecorder, names: tuple[str, ...]) -> str:
    """Record these damaged files beside the copies as a problem; return what is wrong."""
    job, why = journal.job, damage_sentence(journal, names)
    journal.verdicts.problems.open(
        job.name, job.target.name, ProblemType.KIT, "", why=why, paths=names, count=len(names), now=journal.now
    )
    return why

"""Takeover from a lost machine: find its kit, report it, and write it to our directories; never overwrite anything."""

import io
import os
import shlex
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.config_files import create_new_file, holds, sync_folder
from orchestrator.app.kit_disk import MOVED, identities_at, record_of
from orchestrator.app.settings import WrongRequest
from orchestrator.domain.answers import NOT_READ
from orchestrator.domain.errors import OrchestratorError, VerificationFailed
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.kit import (
    DIGESTS,
    KIT_FILES,
    SET_ASIDE,
    KitReview,
    damaged_kit_files,
    find_damaged_file,
    parse_digest_lines,
    parse_digests,
)
from orchestrator.domain.names import point_name, show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import Bytes, Seconds, show_count, show_size
from orchestrator.planners.evacuation import is_source_in
from orchestrator.views.restore import BootstrapKit, Files

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.app.settings import Settings
    from orchestrator.domain.place import Host
    from orchestrator.domain.plan import Pipeline
    from orchestrator.history.values import RunRecord

_HISTORY, _ARCHIVE, _FOLDER = "history.sqlite", "configuration.tar", "configuration/"
_MOST_FILES, _LARGEST = 10_000, 512 << 20  # bytes; a history of 100,000 runs takes 200 MB
_SILENCE = Seconds(600)
_SSH_FAILED = 255  # exit code of ssh itself, before anything ran on the host


def find_kit(
    place: str, log: "Callable[[str], None]", ssh_options: Sequence[str] = (), *, again: str | None
) -> BootstrapKit:
    """Return the newest kit at a place, a sound one before a damaged one. Raises: OrchestratorError when there is none, or the place cannot be read.

    `again`: the command that takes a kit whose files are not as their digests say; None: it is taken.
    """
    with tempfile.TemporaryDirectory(prefix="poolferry-kit-") as folder:
        files = _fetched(place, folder, log, tuple(ssh_options))
        found, damaged = list[BootstrapKit](), list[OrchestratorError]()
        for each in _folders(files):
            try:
                found += filter(None, (_kit(each, files, folder, again),))
            except VerificationFailed as error:  # another job's kit at this place may be sound
                damaged.append(error)
    if damaged and not found:
        raise damaged[0]
    if not found:
        hint = "name the folder in which .poolferry lies, the dataset poolferry-kit, or the device of a disk"
        raise OrchestratorError(f"there is no kit of poolferry at {place}", hint=hint)
    return max(
        found,
        key=lambda kit: (not kit.warnings, kit.last.begun_at.timestamp() if kit.last else 0.0, len(kit.configuration)),
    )


def _fetched(place: str, folder: str, log: "Callable[[str], None]", ssh_options: tuple[str, ...]) -> Files:
    from orchestrator.process.executor import StopReason, Writer
    from orchestrator.process.pipeline import pipeline_failure

    archive = os.path.join(folder, "kits.tar")
    pipeline, host = _pipeline(place, archive)
    result = Writer(log=log, ssh_options=ssh_options).stream(pipeline, stall_after=_SILENCE, most_kept=_LARGEST)
    if result.stopped is not None:
        why = "holds more than a kit" if result.stopped is StopReason.FLOODED else "did not answer in time"
        raise OrchestratorError(f"{place} {why}", hint="name the folder in which .poolferry lies, or another kit")
    if not result.well:
        words = result.last_output[0].strip() or f"it ended with {pipeline_failure(pipeline, result).result.exits[0]}"
        raise OrchestratorError(f"{place} cannot be read: {words}", hint=_hint(words, host, result.exits[0]))
    with open(archive, "rb") as file:
        return unpack_files(file.read())


def _hint(words: str, host: "Host | None", ended: int | None) -> str:
    if "is locked" in words:
        return "cryptsetup open --readonly DEVICE NAME, then name /dev/mapper/NAME"
    if host is None:
        return "is it here, and are you root?"
    if ended == _SSH_FAILED:
        return (
            f"`{host.ssh} true` must end well without a question: say it once, look at the host's key before you "
            "agree, and let this machine's key in there (ssh-copy-id); --ssh-option gives ssh more, such as -i and a file"
        )
    return "is it the folder of a copy, or the dataset above the copies; and may this user read it?"


def _pipeline(place: str, keeps: str) -> "tuple[Pipeline, Host | None]":
    """Return the pipeline that reads a place, and its host; None: this machine."""
    from orchestrator.disks import kits
    from orchestrator.domain.place import parse_location

    if place.startswith("/dev/") and not os.path.isdir(place):
        return kits.device_pipeline(place, keeps), None
    try:
        folder = place.startswith((".", "/")) or os.path.isdir(os.path.join(place, ".poolferry"))
        where = parse_location(os.path.abspath(place) if folder else place)
    except ValueError as error:
        raise WrongRequest(f"{show_name(place)} names no place: expected {error}") from None
    if where.host is not None:
        return kits.host_pipeline(where.path, where.host, keeps), where.host
    if where.path.startswith("/"):
        return kits.folder_pipeline(where.path, keeps), None
    return kits.dataset_pipeline(where.path, keeps), None


def unpack_files(archive: bytes) -> Files:
    """Return the regular files of an archive by their paths. Links, devices, and names that lead outside are left out.

    Raises: OrchestratorError for a file that is no archive, or is larger than a kit can be.
    """
    if not archive:
        return {}
    found, size = dict[str, bytes](), 0
    try:
        # "r:": our archives are never compressed, and a small compressed file may fill the memory. A link in it is no file of
        # its own.
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as read:
            for count, one in enumerate(read):
                size += max(one.size, 0)
                if count >= _MOST_FILES or size > _LARGEST:
                    raise OrchestratorError(
                        f"what lies there is larger than a kit: {show_count(count, 'file')}, {show_size(Bytes(size))}",
                        hint="name the folder in which .poolferry lies, or another kit",
                    )
                path = os.path.normpath(one.name)
                if not one.isreg() or one.sparse or path.startswith(("/", "..")):
                    continue
                if file := read.extractfile(one):
                    found[path] = file.read()
            # Python takes a heading whose sum is wrong for the archive's end, and what lies behind it would just not be there.
            if archive[read.offset : read.offset + tarfile.BLOCKSIZE] != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError(f"it is damaged at byte {read.offset}")
    except (tarfile.TarError, EOFError, *NOT_READ) as error:
        raise OrchestratorError(f"what was read is no archive: {error}", hint="try again with -v") from error
    return found


def _folders(files: Files) -> list[str]:
    return sorted(os.path.dirname(path) for path in files if os.path.basename(path) == _HISTORY)


def _kit(folder: str, files: Files, scratch: str, again: str | None) -> BootstrapKit | None:
    """Read the kit in a folder; return None when there is no configuration beside the history."""
    below = {os.path.relpath(path, folder or "."): files[path] for path in files if _lies_in(path, folder)}
    configuration = {path.removeprefix(_FOLDER): text for path, text in below.items() if path.startswith(_FOLDER)}
    if _ARCHIVE in below:
        packed = unpack_configuration(below[_ARCHIVE])
        configuration = {path.removeprefix(_FOLDER): text for path, text in packed.items() if path.startswith(_FOLDER)}
    if not configuration:
        return None
    warnings = _digest_warnings(below, again)
    last, runs = _runs(below[_HISTORY], scratch)
    return BootstrapKit(
        folder=folder, configuration=configuration, history=below[_HISTORY], last=last, runs=runs, warnings=warnings
    )


def _digest_warnings(files: Files, again: str | None) -> tuple[str, ...]:
    """Return what is wrong with the files of a kit, by their digests; kits of earlier versions have none.

    Raises: VerificationFailed for a file that is not as its digest says, unless `again` is None. Digests that cannot be read say
    nothing of the other files.
    """
    if DIGESTS not in files:
        return ()
    try:
        bad = _damaged_files(files)
    except ValueError:
        return (f"{DIGESTS} is damaged, so nothing says whether the kit's other files are as they were written",)
    if not bad:
        return ()
    verdict = f"{', '.join(bad)} {'is not as it was' if len(bad) == 1 else 'are not as they were'} written"
    if again is not None:
        raise VerificationFailed(
            f"the kit is damaged, or an earlier version of poolferry wrote it last: {verdict}",
            hint="name the kit of another target or disk; the copies beside this one can be restored without it: poolferry "
            f"restore run --from FOLDER --to FOLDER; where there is no other kit, take this one as it is: {again}",
        )
    return (f"{verdict}; taken, as --damaged says",)


def _damaged_files(files: Files) -> tuple[str, ...]:
    """Return the files that are not as the digests say. Raises: ValueError for digests that cannot be read."""
    try:
        told = parse_digest_lines(files[DIGESTS])
    except ValueError:  # those beside copies of files have a tag; a kit of datasets has plain lines
        digests = parse_digests(files[DIGESTS].decode("ascii"))
        found = {name: sha256(files[name]).hexdigest() for name in KIT_FILES if name in files}
        return damaged_kit_files(digests, found)
    return tuple(name for name, digest in told.items() if name in files and sha256(files[name]).hexdigest() != digest)


def unpack_configuration(archive: bytes) -> Files:
    """Return the files of a kit's archive. Raises: VerificationFailed when they are not as they were written."""
    try:
        packed = unpack_files(archive)
    except OrchestratorError as error:
        bad = error.why
    else:
        if (name := find_damaged_file(packed)) is None:
            return packed
        bad = f"{show_name(name)} is not as it was written"
    raise VerificationFailed(
        f"the configuration in the kit ({_ARCHIVE}) is damaged: {bad}",
        hint="name the kit of another target or disk; the copies beside this one can be restored without it: "
        "poolferry restore run --from FOLDER --to FOLDER",
    )


def _lies_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _runs(history: bytes, scratch: str) -> "tuple[RunRecord | None, int]":
    from orchestrator.history.foreign import check_foreign
    from orchestrator.history.store import open_history

    path = os.path.join(scratch, "look.sqlite")
    with open(path, "wb") as file:
        file.write(history)
    check_foreign(path)
    with open_history(path) as opened:
        views = opened.views
        last = next(iter(views.runs(None, 1)), None)
        going_on = 1 if last is not None and last.outcome is None else 0  # a kit is made before its run ends
        return last, sum(each.runs for each in views.totals()) + going_on


# Takeover.


def existing_paths(where: compose.Directories, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the existing paths that a kit would overwrite. `files`: its own, by path; those that are there just so are none of them."""
    names = [os.path.join(where.config, name) for name in ("targets.toml", "poolferry.toml")]
    jobs = os.path.join(where.config, "jobs")
    names += (
        [os.path.join(jobs, name) for name in sorted(os.listdir(jobs)) if not name.startswith(".")]
        if os.path.isdir(jobs)
        else []
    )
    there = (path for path in (*names, where.history) if os.path.exists(path))
    return tuple(path for path in there if path not in files or not holds(path, files[path]))


def refuse_overwriting(where: compose.Directories, files: Mapping[str, bytes]) -> Refusal | None:
    """Return a refusal when the kit would overwrite something; None: nothing is there, or what a takeover that was cut wrote."""
    held = existing_paths(where, files)
    if not held:
        return None
    return Refusal(
        why="this machine has a configuration or a history of its own; nothing is written over it",
        evidence=held[:5],
        hint="use --aside: what is there is renamed and kept; or name other directories by --config and --state",
    )


def rename_existing(where: compose.Directories, now: datetime) -> tuple[str, ...]:
    """Rename the configuration and history that are in the way; return the new names."""
    mark = f".aside-{point_name(now)}"
    paths = [path for path in (where.config, where.history) if os.path.exists(path)]
    for path in paths:
        os.rename(path, f"{path}{mark}")
        sync_folder(os.path.dirname(path))
    return tuple(f"{path}{mark}" for path in paths)


def install_kit(
    kit: BootstrapKit, review: KitReview, where: compose.Directories, place: str, log: "Callable[[str], None]"
) -> tuple[str, ...]:
    """Write configuration and history, readable by the owner only; record the move in history; return the paths."""
    files = _files_of(kit, review, where)
    for path, content in files.items():
        create_new_file(path, content, mode=0o600, folders=0o700)
    told = record_of(kit.last.host if kit.last else "", place, log)
    with compose.open_history(where) as history:
        history.remember("", MOVED, told)  # from here on it is taken over, also where this is cut
        history.heal(lambda *_: False, compose.now())  # no run of the lost machine is running here
    return tuple(path for path in files if not path.endswith(SET_ASIDE))


def _files_of(kit: BootstrapKit, review: KitReview, where: compose.Directories) -> dict[str, bytes]:
    """Return the files that a takeover writes, by path, in the order in which it does; the history is the last one."""
    files = {os.path.join(where.config, path): text for path, text in sorted(review.accepted.items())}
    aside = {
        os.path.join(where.config, each.path + SET_ASIDE): kit.configuration[each.path] for each in review.set_aside
    }
    return {**files, **aside, where.history: kit.history}


def next_steps(settings: "Settings", place: str) -> tuple[str, ...]:
    """Return the next commands to run, in order. `place`: of the kit; its disk needs no command to be accepted."""
    say = settings.repeat
    lines = [say("check --system")]
    try:
        known = settings.configuration()
    except OrchestratorError:
        return (say("check"),)
    own = identities_at(place, settings.log)
    if any(disk.identity not in own for each in known.sets for disk in each.disks):
        others = "each other disk, when it comes" if own else "each disk, as it belongs to another machine"
        lines += [say("disks list"), f"{say('disks readopt')} DISK  # {others}"]
    copied = [job for job in known.jobs if job.copies]
    for pool in dict.fromkeys(job.source.path.partition("/")[0] for job in copied if _is_here(job.source)):
        lines += [*_creation(settings, pool), say(f"restore pool {pool}")]
    for job in (job for job in copied if not _is_here(job.source)):
        paths = [f" --path {shlex.quote(part)}" for part in job.parts] or [""]
        named = zip(paths, job.tree.folders, strict=True)
        lines += [say(f"restore plan {job.name}{path} --to {folder}") for path, folder in named]
    return tuple(lines)


def _is_here(source: Location) -> bool:
    """Return True for a dataset of this machine, which comes back with its pool."""
    return source.host is None and not source.path.startswith("/")


def _creation(settings: "Settings", pool: str) -> tuple[str, ...]:
    """Return the commands of the kits that create a pool again, unless it is there; none where no kit knows it."""
    from orchestrator.app import pool_evacuation, pool_rebuild

    try:
        with settings.views() as views:
            jobs = [job.name for job in settings.configuration().jobs if is_source_in(job, pool)]
            kits = {name: kit.kit.content for name in jobs if (kit := views.kits.of(name)) is not None}
        told = pool_rebuild.read_kit_facts(pool, kits)
        there = pool_evacuation.survey_pool(settings, pool).guid is not None
    except OrchestratorError:  # no zfs yet, or a kit that cannot be read: `restore pool` says so
        return ()
    return () if there else pool_rebuild.commands_to_create(pool, told, there=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapEnd:
    """Result of a takeover. `refusal`: why nothing is written; `following`: the next commands, in order."""

    kit: BootstrapKit
    review: KitReview
    refusal: Refusal | None = None
    written: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    following: tuple[str, ...] = ()


def bootstrap(
    settings: "Settings",
    place: str,
    *,
    plan: bool,
    aside: bool,
    damaged: bool,
    trust: Sequence[str],
    ssh_options: Sequence[str],
) -> BootstrapEnd:
    """Find the kit at a place, and take it over. Raises: OrchestratorError.

    `plan`: only look; `damaged`: a kit is taken that is not as its digests say; `trust`: names of files that are taken over although
    they run commands.
    """
    from orchestrator.config.kit_review import host_of, review_kit

    words = [*(["--plan"] if plan else []), *(["--aside"] if aside else [])]
    words += ["--damaged", *(word for name in trust for word in ("--trust", name))]
    words += [f"--ssh-option={word}" for word in ssh_options]
    again = settings.repeat(f"restore bootstrap {shlex.join([place, *words])}")
    kit = find_kit(place, settings.log, ssh_options, again=None if damaged else again)
    where = settings.where
    review = review_kit(kit.configuration, frozenset(trust), host=host_of(place))
    refusal = None if aside else refuse_overwriting(where, _files_of(kit, review, where))
    if refusal is not None or plan:
        return BootstrapEnd(kit=kit, review=review, refusal=refusal)
    moved = rename_existing(where, compose.now()) if aside else ()
    written = install_kit(kit, review, where, place, settings.log)
    return BootstrapEnd(kit=kit, review=review, written=written, aside=moved, following=next_steps(settings, place))

"""Surveys of a copy and of its destination: the same as for a run, and all properties of both."""

from collections.abc import Iterable, Mapping
from functools import partial

from orchestrator.domain.answers import split_lines
from orchestrator.domain.dataset_restore import DatasetRestoreRequest
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import unescape_mount_path
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.source_identity import RESTORED
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.model import ZfsSurvey
from orchestrator.engines.zfs.recovery.kit_diff import parse_kit_content
from orchestrator.engines.zfs.restore import pool_root as rooting
from orchestrator.engines.zfs.restore import uid_map as owners
from orchestrator.engines.zfs.restore.model import DatasetRestoreSurvey, PropertyValue
from orchestrator.engines.zfs.restore.plan import (
    cursors_to_restore,
    cut_to_point,
    is_original_place,
    leave_aside,
    make_restore_job,
    partial_points,
    short_datasets,
)
from orchestrator.engines.zfs.survey.parse import UnreadableListing, mountpoint_without_altroot
from orchestrator.engines.zfs.survey.survey import parse_result, run_read_command, side_by_side, survey, survey_copy
from orchestrator.engines.zfs.verify.checksum import ChecksumSupport, checksum_support_command, parse_checksum_support
from orchestrator.process.executor import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyListing:
    """Properties of one side by dataset below the root, and mounted datasets by mountpoint.

    `occupied`: their mountpoints without a mount, but with files that a mount would hide; `keyless`: locations of keys that hold
    no file.
    """

    properties: dict[str, dict[str, PropertyValue]]
    mounts: dict[str, str]
    occupied: frozenset[str] = frozenset()
    keyless: frozenset[str] = frozenset()


def survey_dataset_restore(
    job: Job, dataset_request: DatasetRestoreRequest, run_request: RunRequest, reader: Reader, *, content: bool
) -> DatasetRestoreSurvey:
    """Return everything that a restore needs. Raises: OrchestratorError."""
    back = make_restore_job(job, dataset_request)
    world = replace(survey(back, run_request, reader, whole=True), returning=job.target.location.path)
    world, aside = leave_aside(world, job)
    world, bare = cut_to_point(world, dataset_request.until)
    short = {} if dataset_request.below else short_datasets(world, dataset_request.until, dataset_request.kit)
    source, target = world.source.root, world.target.root
    copied, home = side_by_side(reader, partial(_properties, source), partial(_properties, target))
    short |= {name: "" for name in bare if _is_cut(copied.properties.get(name, {}))}
    return DatasetRestoreSurvey(
        job=back, world=world, homeward=is_original_place(job, dataset_request), copied=copied.properties, home=home.properties,
        mounts=home.mounts, occupied=home.occupied, bare=bare,
        able=(_able(source, reader), _able(target, reader)) if content else None, cursors=cursors_to_restore(job, dataset_request),
        short=short, inside=_inside(world, reader), lost=_below_root(target, dataset_request.lost_keys), keyless=home.keyless,
        already=run_request.remembered.get(RESTORED) == str(target), aside=aside, below=dataset_request.below,
    )  # fmt: skip


def survey_partial_points(job: Job, kit: str | None, reader: Reader) -> dict[str, tuple[str, ...]]:
    """Return the points that lack datasets, by the copy alone: each with the full names of those at the source.

    Raises: OrchestratorError.
    """
    found = partial_points(survey_copy(job, reader).target, kit)
    return {point: tuple(f"{job.source.path}/{name}" for name in names) for point, names in found.items()}


def _is_cut(properties: Mapping[str, PropertyValue]) -> bool:
    """Return whether a receive was interrupted in a dataset of the copy."""
    token = properties.get("receive_resume_token")
    return token is not None and token.value not in ("", "-")


def survey_owners(kit: str, to: Location, reader: Reader) -> tuple[str, ...]:
    """Return the accounts whose numbers at the destination differ; a kit without accounts needs no survey.

    Raises: OrchestratorError.
    """
    then = parse_kit_content(kit)
    if not then.get("users") and not then.get("groups"):
        return ()
    return owners.owner_warnings(
        then, owners.parse_accounts(run_read_command(reader, owners.accounts_command(to.host)).stdout)
    )


def _inside(world: ZfsSurvey, reader: Reader) -> tuple[str, ...] | None:
    if not rooting.needs_file_look(world):
        return None
    return rooting.parse_inside(run_read_command(reader, rooting.inside_command(world.target)).stdout)


def _below_root(root: Location, names: Iterable[str]) -> frozenset[str]:
    """Return datasets, told by their full names, by their names below the root."""
    return frozenset(
        name[len(root.path) + 1 :] if f"{name}/".startswith(f"{root.path}/") else f"/{name}" for name in names
    )


def _able(root: Location, reader: Reader) -> ChecksumSupport:
    return parse_checksum_support(split_lines(run_read_command(reader, checksum_support_command(root)).stdout), root)


def _properties(root: Location, reader: Reader) -> PropertyListing:
    command = properties_command(root)
    result = run_read_command(reader, command)
    return parse_result(command, result, lambda: parse_properties(result.stdout.split(b"\n"), root))


def properties_command(root: Location) -> Command:
    """Build the command that prints all properties of a root and of all below it, and all mounts."""
    return commands.script_command(
        "list-properties.sh", root.path, effect=Effect.READS, where=CommandHost(host=root.host),
        with_functions=commands.PROPERTY_FUNCTIONS,
    )  # fmt: skip


def parse_properties(lines: Iterable[bytes], root: Location) -> PropertyListing:
    """Parse properties by dataset below the root, and mounted datasets by mountpoint. Raises: ValueError.

    Of a value of several lines the first line is listed.
    """
    told: dict[str, dict[str, PropertyValue]] = {}
    mounts: dict[str, str] = {}
    occupied: set[str] = set()
    keyless: set[str] = set()
    part = altroot = ""
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        if text in ("=properties", "=altroot", "=mounts", "=occupied", "=keyless", "=end"):
            part = text
        elif part == "=properties":
            fields = text.split("\t")
            if len(fields) == 5 and f"{fields[0]}/".startswith(f"{root.path}/"):
                told.setdefault(fields[0][len(root.path) + 1 :], {})[fields[1]] = _value(*fields[2:])
        elif part == "=altroot":
            altroot = text
        elif part == "=mounts" and text:
            what, _, where = text.partition(" ")
            mounts[unescape_mount_path(where)] = unescape_mount_path(what)
        elif part == "=occupied" and text:
            occupied.add(text)
        elif part == "=keyless" and text:
            keyless.add(text)
    if part != "=end":
        raise UnreadableListing("the properties ended too early")
    for own in told.values():
        if altroot.startswith("/") and (told_so := own.get("mountpoint")):
            received = told_so.received and mountpoint_without_altroot(told_so.received, altroot)
            own["mountpoint"] = replace(
                told_so, received=received, outside=mountpoint_without_altroot(told_so.value, altroot)
            )
    return PropertyListing(properties=told, mounts=mounts, occupied=frozenset(occupied), keyless=frozenset(keyless))


def _value(value: str, received: str, source: str) -> PropertyValue:
    return PropertyValue(value=value, received=None if received == "-" else received, source=source)

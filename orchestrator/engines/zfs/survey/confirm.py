"""Confirmation that the sent snapshots arrived, and size estimates for the next sends."""

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial

from orchestrator.domain.answers import split_lines, text_lines
from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Confirmation, Pipeline, Plan, Step
from orchestrator.domain.units import Bytes, Seconds, show_count
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.model import Snapshot, SnapshotPresent
from orchestrator.engines.zfs.survey import parse
from orchestrator.engines.zfs.survey.survey import PATIENCE, parse_result, run_read_command
from orchestrator.process.executor import Reader

MOST_ESTIMATED = 50
_NAMED = 5


def confirm_snapshots(
    confirmations: Iterable[Confirmation], reader: Reader, *, uncertain: Iterable[Confirmation] = ()
) -> None:
    """Check that all snapshots arrived, by guid, with one survey per host. Raises: VerificationFailed naming the datasets.

    The last one of a dataset must be its newest, or one of the `uncertain`, which were being sent after it.
    Why: `zfs receive` may end well and have skipped the stream; and it may be killed after it received all of one.
    """
    hosts: dict[Host | None, list[SnapshotPresent]] = {}
    for confirmation in confirmations:
        if isinstance(confirmation, SnapshotPresent):
            hosts.setdefault(confirmation.dataset.host, []).append(confirmation)
    newer = frozenset(
        (confirmation.dataset, confirmation.guid)
        for confirmation in uncertain
        if isinstance(confirmation, SnapshotPresent)
    )
    failed = [line for host, expected in hosts.items() for line in _judged(expected, newer, host, reader)]
    if failed:
        more = f"; and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        raise VerificationFailed(
            f"{show_count(len(failed), 'copy', 'copies')} not as expected: {'; '.join(failed[:_NAMED])}{more}",
            hint="run again: it will plan again and retry; does something else write or take snapshots there?",
        )


def _judged(
    expected: Sequence[SnapshotPresent], newer: Set[tuple[Location, int]], host: Host | None, reader: Reader
) -> Iterable[str]:
    """Return the differences from the expected state; a snapshot not found by its name is searched for in its whole dataset."""
    told = _survey_properties(expected, host, reader)
    last = {confirmation.dataset.path: confirmation for confirmation in expected}
    unclear = {
        confirmation.dataset.path
        for confirmation in expected
        if told.get((_name(confirmation), "guid")) != str(confirmation.guid)
        or (
            last[confirmation.dataset.path] is confirmation
            and told.get((confirmation.dataset.path, "prevsnap")) != _name(confirmation)
        )
    }
    left = [confirmation for confirmation in expected if confirmation.dataset.path in unclear]
    return _failed(left, newer, _find_snapshots(left, host, reader)) if left else ()


def _survey_properties(
    expected: Sequence[SnapshotPresent], host: Host | None, reader: Reader
) -> Mapping[tuple[str, str], str]:
    """Return properties of the expected datasets and snapshots only, as listing all of them takes long."""
    told: dict[tuple[str, str], str] = {}
    names = dict.fromkeys(
        name for confirmation in expected for name in (confirmation.dataset.path, _name(confirmation))
    )
    for batch in commands.batch_arguments((name,) for name in names):
        command = commands.confirm_command(batch, host)
        result = run_read_command(reader, command)
        told |= parse_result(command, result, partial(parse.parse_property_listing, split_lines(result.stdout)))
    return told


def _name(confirmation: SnapshotPresent) -> str:
    return f"{confirmation.dataset.path}@{confirmation.snapshot}"


def _find_snapshots(
    expected: Sequence[SnapshotPresent], host: Host | None, reader: Reader
) -> Mapping[str, Sequence[Snapshot]]:
    seen: dict[str, Sequence[Snapshot]] = {}
    for batch in commands.batch_arguments(
        (dataset,) for dataset in dict.fromkeys(confirmation.dataset.path for confirmation in expected)
    ):
        command = commands.newest_command(batch, host)
        result = run_read_command(reader, command)
        seen |= parse_result(command, result, partial(parse.parse_newest, split_lines(result.stdout)))
    return seen


def _failed(
    expected: Sequence[SnapshotPresent], newer: Set[tuple[Location, int]], seen: Mapping[str, Sequence[Snapshot]]
) -> Iterable[str]:
    last = {confirmation.dataset.path: confirmation for confirmation in expected}
    for confirmation in expected:
        there = seen.get(confirmation.dataset.path, ())
        if all(snapshot.guid != confirmation.guid for snapshot in there):
            yield f"{confirmation.dataset} has no snapshot {confirmation.snapshot} with guid {confirmation.guid}"
            continue
        newest = there[-1]
        if (
            last[confirmation.dataset.path] is confirmation
            and newest.guid != confirmation.guid
            and (confirmation.dataset, newest.guid) not in newer
        ):
            yield f"{confirmation.dataset} has {newest.name} after {confirmation.snapshot}, from elsewhere"


def estimate_sizes(plan: Plan, reader: Reader, *, patience: Seconds = PATIENCE) -> Plan:
    """Return the plan with the dry-run sizes of its first 50 sends. A size that is not reported stays unknown."""
    sends = [step for step in plan.steps if step.copies and sending_command(step) is not None][:MOST_ESTIMATED]
    sizes: dict[int, int | None] = {}
    for group in _by_host(sends):
        first = sending_command(group[0])
        if first is None:
            continue
        for step, size in zip(group, _weighed(group, first.host, reader, patience), strict=False):
            sizes[id(step)] = size
    return replace(plan, stages=tuple(tuple(_with_size(step, sizes) for step in stage) for stage in plan.stages))


def _with_size(step: Step, sizes: Mapping[int, int | None]) -> Step:
    size = sizes.get(id(step))
    return step if size is None else replace(step, expected=Bytes(size))


def _weighed(steps: Sequence[Step], host: Host | None, reader: Reader, patience: Seconds) -> Sequence[int | None]:
    senders = [sender for step in steps if (sender := sending_command(step)) is not None]
    where = commands.CommandHost(host=host, sudo=any(map(commands.runs_with_sudo, senders)))
    command = commands.send_sizes_command(senders, where)
    result = run_read_command(reader, command, patience=patience)
    lines = text_lines(result.stdout)
    return parse_result(command, result, lambda: parse.parse_sizes(lines))


def _by_host(steps: Iterable[Step]) -> Iterable[Sequence[Step]]:
    groups: dict[Host | None, list[Step]] = {}
    for step in steps:
        sender = sending_command(step)
        groups.setdefault(sender.host if sender else None, []).append(step)
    return groups.values()


def sending_command(step: Step) -> Command | None:
    """Return the sending command of a step's stream."""
    if not isinstance(step.work, Pipeline):
        return None
    first = step.work.stages[0]
    return first if commands.send_arguments(first) is not None else None

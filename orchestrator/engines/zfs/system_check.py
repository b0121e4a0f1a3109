"""Advice lines of `check --system` for a zfs job: programs, versions, pools, both datasets, permissions."""

import re
from collections.abc import Sequence

from orchestrator.domain.answers import text_lines
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import OrchestratorError, OutsideError, ProgramMissing
from orchestrator.domain.gate import PRINTED
from orchestrator.domain.job import Job
from orchestrator.domain.names import printable_word
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan import transport
from orchestrator.engines.zfs.survey import parse
from orchestrator.engines.zfs.survey.parse import ABSENT, DelegatedRights, SideListing
from orchestrator.engines.zfs.survey.survey import HEALTHY, parse_result, run_read_command
from orchestrator.process.executor import Reader

_LEAST = (2, 1)
SENDING = ("bookmark", "destroy", "hold", "release", "send")
RECEIVING = tuple(
    "canmount create destroy mount mountpoint quota readonly receive refquota refreservation rename reservation rollback "
    "sharenfs sharesmb userprop".split()
)
# Behind a gate a user only adds. Since OpenZFS 2.3.9 zfs itself can hold a user to that; 2.1.11 says "operation not applicable". Both
# tried: with receive alone `receive -F` destroys newer snapshots; with receive:append that is refused, and a cut stream goes on.
ADDING = tuple(right for right in RECEIVING if right not in ("destroy", "rename", "rollback"))
_APPEND_SINCE = (2, 3, 9)


def adding_rights(version: Sequence[int]) -> tuple[str, ...]:
    """Return the rights that a user needs to add to copies, with the least one to receive that this version of ZFS has."""
    least = "receive:append" if tuple(version) >= _APPEND_SINCE else "receive"
    return tuple(least if right == "receive" else right for right in ADDING)


def check_system(job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
    """Return one line for each thing that a run needs; the first failure on a side ends the lines of that side."""
    found: list[SystemCheckResult] = []
    versions = [
        _side(found, job, job.source, reader, target=False),
        _side(found, job, job.target.location, reader, target=True),
    ]
    source, target = versions
    if source and target and target < source:
        text = f"ZFS {_run_check(target)} receives from {_run_check(source)}: fine while no newer feature is used"
        found.append(SystemCheckResult(good=False, subject="versions", text=text, hinders=False))
    return tuple(dict.fromkeys(found))  # both sides may be this machine


def _side(found: list[SystemCheckResult], job: Job, root: Location, reader: Reader, *, target: bool) -> tuple[int, ...]:
    """Append the advice lines of one side to `found`, and return its ZFS version."""
    subject = f"{'target' if target else 'source'} {root}"
    try:
        command = commands.survey_command(
            root, target=target, recursive=False, sudo=options_of(job).sudo, above=False, created=False
        )
        result = run_read_command(reader, command)
        look = parse_result(command, result, lambda: parse.parse_survey(result.stdout.split(b"\n")))
        found += [
            _version(look, root),
            _mbuffer(look, root, job),
            *_perl(root, job, reader),
            *_ssh_addresses(look, root, job),
            _pool(look, root, target=target),
        ]
        if look.health in HEALTHY:
            found += _rights(look, root, reader, job, target=target)
        return look.version
    except OrchestratorError as error:
        found.append(SystemCheckResult(good=False, subject=subject, text=f"{error.why}: {error.hint}"))
    return ()


def _at(root: Location) -> str:
    return f"on {root.host}" if root.host else "here"


def _run_check(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _version(look: SideListing, root: Location) -> SystemCheckResult:
    subject = f"zfs {_at(root)}"
    if look.version >= _LEAST:
        return SystemCheckResult(good=True, subject=subject, text=f"version {_run_check(look.version)}")
    text = f"version {_run_check(look.version) or 'unknown'}; 2.1 is the oldest that is tested"
    return SystemCheckResult(good=False, subject=subject, text=text, hinders=False)


def _ssh_addresses(look: SideListing, root: Location, job: Job) -> tuple[SystemCheckResult, ...]:
    """Return advice on mbuffer's own connection: whether it is allowed, and between which addresses."""
    if root.host is None or not transport.uses_own_connection(job):
        return ()
    subject = f"transport to {root.host}"
    if refusal := transport.refuse_addresses(job, root.host, look.wire):
        return (SystemCheckResult(good=False, subject=subject, text=f"{refusal.why}: {refusal.hint}"),)
    ends = f"between {look.wire.here} and {look.wire.there}" if look.wire else ""
    return (
        SystemCheckResult(good=True, subject=subject, text=f"mbuffer, in the clear {ends}, ports {transport.PORTS}"),
    )


def _mbuffer(look: SideListing, root: Location, job: Job) -> SystemCheckResult:
    subject = f"mbuffer {_at(root)}"
    if look.mbuffer:
        return SystemCheckResult(good=True, subject=subject, text="is there")
    limited = transport.uses_own_connection(job) or (job.pipe.rate_limit is not None and root.host is None)
    why = "[pipe] asks for it" if limited else "without it disk and network wait for each other"
    return SystemCheckResult(
        good=False, subject=subject, text=f"is not installed: {why}; apt install mbuffer", hinders=limited
    )


def _perl(root: Location, job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
    """Return advice on perl, which makes a connection of its own and is asked for by nothing else."""
    if not transport.uses_own_connection(job):
        return ()
    subject = f"perl {_at(root)}"
    try:
        run_read_command(reader, commands.perl_command(root.host))
    except ProgramMissing:
        text = 'is not installed: transport = "mbuffer" needs it; apt install perl-base'
        return (SystemCheckResult(good=False, subject=subject, text=text),)
    return (SystemCheckResult(good=True, subject=subject, text="is there"),)


def _pool(look: SideListing, root: Location, *, target: bool) -> SystemCheckResult:
    subject, pool = f"{'target' if target else 'source'} {root}", root.path.partition("/")[0]
    if look.health == ABSENT:
        where = "the dataset of its place in targets.toml" if target else "`source` in the job file"
        text = f"the pool {pool} is not imported: zpool import {quoted(pool)}; or, if it has another name now, correct {where}"
        return SystemCheckResult(good=False, subject=subject, text=text)
    if look.health not in HEALTHY:
        text = f"the pool {pool} is {look.health.lower()}: see zpool status {quoted(pool)}"
        return SystemCheckResult(good=False, subject=subject, text=text)
    if look.there:
        snapshots = show_count(len(look.snapshots.get(root.path, ())), "snapshot")
        poor = (
            "" if look.health == "ONLINE" else f"; the pool is {look.health.lower()}: see zpool status {quoted(pool)}"
        )
        return SystemCheckResult(
            good=not poor, subject=subject, text=f"is there, with {snapshots}{poor}", hinders=False
        )
    text = "will be made by the first run" if target else "is not there: correct `source` in the job file"
    return SystemCheckResult(good=target, subject=subject, text=text)


def _rights(look: SideListing, root: Location, reader: Reader, job: Job, *, target: bool) -> list[SystemCheckResult]:
    pool = root.path.partition("/")[0]
    may = parse.parse_rights(text_lines(run_read_command(reader, commands.rights_command(root)).stdout))
    found = []
    if may.read_only:
        what = "nothing can be copied" if target else "no bookmark can be made there"
        text = f"is imported read-only, so {what}: zpool export {quoted(pool)}, then zpool import {quoted(pool)}"
        if not target:
            text += f"; or, to copy it all the same: poolferry run {job.name} --allow no-bookmarks"
        found.append(SystemCheckResult(good=False, subject=f"pool {pool} {_at(root)}", text=text))
    if target and may.resumable in ("disabled", "-"):
        text = f"a transfer that is cut starts from the beginning: zpool set feature@extensible_dataset=enabled {quoted(pool)}"
        found.append(SystemCheckResult(good=False, subject=f"pool {pool} {_at(root)}", text=text, hinders=False))
    gate = _gate_of_key(root, reader)
    found += _key(look, root, may, gate, target=target)
    if not look.root:
        needed = (ADDING if gate else RECEIVING) if target else SENDING
        adds = look.version if gate and target else ()
        found.append(_sudo(root, reader) if look.sudo else _delegated(may, root, needed, adds))
    return found


def try_destroy_command(root: Location) -> Command:
    """Build the command that would destroy a snapshot, of a name that none has, and only says what it would do (-n)."""
    words = ("destroy", "-n", f"{root.path}@poolferry-tries-its-key")
    return commands.zfs_command(*words, effect=Effect.READS, where=CommandHost(host=root.host))


def _gate_of_key(root: Location, reader: Reader) -> str | None:
    """Return the gate that refuses our key to destroy something there: tried. Empty: none does; None: that cannot be seen."""
    if root.host is None:
        return None
    try:
        run_read_command(reader, try_destroy_command(root))
    except OutsideError as error:
        found = re.search(rf"{PRINTED}(\S+): refused: ", " ".join(error.evidence.last_output))
        return printable_word(found[1]) if found else ""
    except OrchestratorError:
        return None
    return ""


def _key(
    look: SideListing, root: Location, may: DelegatedRights, gate: str | None, *, target: bool
) -> tuple[SystemCheckResult, ...]:
    """Return a line for what our key may do there to the copies, or to the source."""
    if gate is None:
        return ()
    if gate and target:
        text = f"append-only: tried to destroy, and the gate {gate} refused{_without_gate(look, may)}"
    elif gate:
        text = f"goes through the gate {gate}: tried to destroy, and was refused"
    else:
        text = _what_else(look, may, target=target)
    return (SystemCheckResult(good=True, subject=f"key at {root.host}", text=text),) if text else ()


def _without_gate(look: SideListing, may: DelegatedRights) -> str:
    """Return what holds where the user of a gate comes in by another way; nothing is said of root."""
    who = quoted(may.user)
    if look.root or look.sudo:
        return ""
    if "destroy" in may.rights:
        return (
            f"; {who} has the right to destroy there, so the gate is the only wall: as root, {_taken(may, 'destroy')}"
        )
    if "receive" not in may.rights:
        return "; zfs refuses it, too, and `receive -F`" if "receive:append" in may.rights else ""
    only = "; against `receive -F` the gate is the only wall"
    if tuple(look.version) < _APPEND_SINCE:
        return f"{only}, as ZFS {_run_check(look.version)} there has no receive:append"
    where = quoted(may.granted_on("receive")[0])
    return f"{only}: as root, {_taken(may, 'receive')} && zfs allow {who} receive:append {where}"


def _taken(may: DelegatedRights, right: str) -> str:
    """Return the command that takes a right, from each dataset on which it was granted."""
    return " && ".join(f"zfs unallow {quoted(may.user)} {right} {quoted(where)}" for where in may.granted_on(right))


def _what_else(look: SideListing, may: DelegatedRights, *, target: bool) -> str:
    """Return what a key may do that goes through no gate."""
    what = "its own copies" if target else "the source"
    gate = f"; `poolferry setup gate` there lets it only {'add to them' if target else 'read what is copied'}"
    if look.root or look.sudo or "destroy" in may.rights:
        return f"this key can destroy {what}{gate}"
    if target and "receive" in may.rights:
        return f"this key can destroy newer snapshots of its own copies by `zfs receive -F`{gate}"
    return ""


def _sudo(root: Location, reader: Reader) -> SystemCheckResult:
    run_read_command(reader, commands.sudo_command(root))
    return SystemCheckResult(good=True, subject=f"sudo {_at(root)}", text="runs zfs without a password")


def _delegated(may: DelegatedRights, root: Location, needed: Sequence[str], adds: Sequence[int]) -> SystemCheckResult:
    """Return a line for the rights of our user. `adds`: the version of ZFS behind a gate, where it only adds."""
    subject = f"rights on {root}"
    had = {right.removesuffix(":append") for right in may.rights}  # of receive, since OpenZFS 2.3.9: all but -F
    lacking = [right for right in needed if right not in had]
    if not lacking:
        return SystemCheckResult(good=True, subject=subject, text=f"{may.user} may do what is needed")
    named = [right for right in adding_rights(adds) if right.removesuffix(":append") in lacking] if adds else lacking
    allow = f"zfs allow {quoted(may.user)} {','.join(named)} {quoted(may.dataset)}"
    text = f"{allow}, as root there" if adds else f"{allow}; or sudo = true in [zfs]"
    return SystemCheckResult(good=False, subject=subject, text=text, hinders=False)

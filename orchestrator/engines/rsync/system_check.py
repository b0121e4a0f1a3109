"""The checks of `check --system` for an rsync job: programs, versions with known bugs, source, target, free space."""

import re
import shlex
from collections.abc import Callable
from functools import partial

from orchestrator.domain.errors import OrchestratorError, OutsideError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.gate import PRINTED
from orchestrator.domain.job import Job
from orchestrator.domain.names import printable_word, show_name
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.engines.rsync import commands, parse, script_commands
from orchestrator.engines.rsync.abilities import explain_consent
from orchestrator.engines.rsync.commands import choose_compression
from orchestrator.engines.rsync.model import RsyncProgram, SourceSurvey
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.refusals import explain_marker
from orchestrator.engines.rsync.survey import ask, command_runner
from orchestrator.process.executor import Reader

# Source: rsync's NEWS. Distributions fix old versions without a new number, so this is advice and no refusal.
_HOLES = (
    ((3, 4, 0), "heap overflow and five more holes (CVE-2024-12084 to -12088, -12747)"),
    ((3, 4, 3), "six holes of May 2026 (CVE-2026-29518, -43617 to -43620, -45232)"),
    ((3, 5, 0), "33 holes of August 2026, some open to a hostile far side"),
)


_NEW = ("will be made by the first run", "holds 0 points")  # of a target that no copy has asked yet
# By the type that the kernel names. Others are asked by the first copy, and so are these.
_LOSES = {
    **dict.fromkeys(("vfat", "msdos", "exfat"), "owners, modes, links, attributes and some names"),
    **dict.fromkeys(("ntfs", "ntfs3", "fuseblk"), "owners, modes and some names, unless it is mounted for that"),
    **dict.fromkeys(("fuse.sshfs", "cifs", "smb3", "9p"), "owners and attributes, unless the other side lets it"),
}  # fmt: skip


def check_system(job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
    """Return one line for each thing that a run needs; the first failure of a side ends its lines."""
    run = command_runner(reader)
    far = job.source.host or job.target.location.host
    found: list[SystemCheckResult] = []
    programs = [_program(found, "rsync here", run, None)]
    if far:
        programs.append(_program(found, f"rsync on {far}", run, far))
        here, there = programs
        found += _key(job, far, run) if there and not far.here else ()
        if here and there and not far.here:
            chosen = choose_compression(options_of(job).compress, here, there)
            found.append(
                SystemCheckResult(
                    good=True, subject=f"link to {far}", text=f"compression: {' '.join(chosen) or 'none'}"
                )
            )
    for host, program in zip((None, far), programs, strict=False):
        if program is not None:  # else the machine has been named already
            kept = options_of(job).fake_super and host is not None
            found += _tools(
                "programs here" if host is None else f"programs on {host}", run, host, needs_attributes=kept
            )
            found += _links("links in trees here" if host is None else f"links in trees on {host}", run, host)
    try:
        looked = script_commands.survey_source_command(job.tree, whole=not job.parts)
        parts = ask(run, looked, partial(parse.parse_sources, tree=job.tree))
        found += [_source(folder, seen) for folder, seen in zip(job.tree.folders, parts, strict=True)]
    except OrchestratorError as error:
        found.append(SystemCheckResult(good=False, subject=f"source {job.tree}", text=f"{error.why}: {error.hint}"))
    _try(found, f"target {job.target.location}", lambda: _target(job, run))
    target, consent = found[-1], explain_consent(options_of(job))
    if target.good:
        found += _writable(job, run)
    if consent:
        found.append(SystemCheckResult(good=False, subject="[rsync]", text=consent, hinders=False))
    elif target.good and target.text.startswith(_NEW):
        found += _filesystem(job, run)
    return tuple(found)


def _program(
    found: list[SystemCheckResult], subject: str, run: Callable[[Command], bytes], host: Host | None
) -> RsyncProgram | None:
    programs: list[RsyncProgram] = []

    def look() -> SystemCheckResult:
        program = ask(run, commands.rsync_version_command(host), parse.parse_program)
        if program is None:
            return SystemCheckResult(good=False, subject=subject, text="does not print its version; is it rsync?")
        programs.append(program)
        return _judge(subject, program)

    _try(found, subject, look)
    return programs[0] if programs else None


def try_key_command(host: Host) -> Command:
    """Build the command that does nothing, and that no gate lets through."""
    return Command(argv=("true",), effect=Effect.READS, host=host)


def try_removal_command(job: Job) -> Command:
    """Build the command that would remove a point, of a time before there were any; it counts as reading, as no gate lets it through."""
    return replace(script_commands.remove_command(job.target.location, ("1970-01-01T000000Z",)), effect=Effect.READS)


def _key(job: Job, far: Host, run: Callable[[Command], bytes]) -> tuple[SystemCheckResult, ...]:
    """Return a line for what our key may do there: tried with a program that no gate lets through."""
    subject, pulls = f"key at {far}", job.source.host is not None
    try:
        gate = _refusing_gate(run, try_key_command(far))
        if gate and not pulls:  # so it is no login: only now a removal may be asked for
            gate = _refusing_gate(run, try_removal_command(job))
    except OrchestratorError:
        return ()
    if gate is None:
        text = "may do anything there, so whoever takes over this machine can remove the copies"
        if pulls:
            text = "may do anything there; `poolferry setup gate` there lets it only read what is copied"
        elif (
            options_of(job).points and not options_of(job).fake_super
        ):  # a gate lets no rsync keep owners and modes in attributes
            text += f"; `poolferry setup gate {job.name} --adds {shlex.quote(job.target.location.path)}` there lets it only add to them"
        return (SystemCheckResult(good=True, subject=subject, text=text),)
    text = f"goes through the gate {gate}: anything else was tried, and refused"
    if not pulls:
        text = f"append-only: tried to remove a point, and the gate {gate} refused"
    return (SystemCheckResult(good=True, subject=subject, text=text),)


def _refusing_gate(run: Callable[[Command], bytes], command: Command) -> str | None:
    """Return the name of the gate that refuses a command; None where it went through. Raises: OrchestratorError."""
    try:
        run(command)
    except OutsideError as error:
        gate = re.search(rf"{PRINTED}(\S+): refused: ", " ".join(error.evidence.last_output))
        if gate is None:
            raise
        return printable_word(gate[1])
    return None


def _tools(
    subject: str, run: Callable[[Command], bytes], host: Host | None, *, needs_attributes: bool = False
) -> tuple[SystemCheckResult, ...]:
    """Return a line for programs that the scripts need and that are missing, or not GNU's: BusyBox has others of those names."""
    try:
        lacking = run(script_commands.survey_tools_command(host)).decode("utf-8", "replace").split()
    except OrchestratorError as error:
        return (SystemCheckResult(good=False, subject=subject, text=f"{error.why}: {error.hint}"),)
    wrong = [name for name in lacking if name != "getfattr"]
    if wrong:
        text = f"missing, or not GNU's (BusyBox?): {', '.join(wrong)}: apt install findutils coreutils util-linux"
        return (SystemCheckResult(good=False, subject=subject, text=text),)
    if lacking and needs_attributes:
        text = "fake-super keeps owners and modes by getfattr and setfattr, which are missing: apt install attr"
        return (SystemCheckResult(good=False, subject=subject, text=text),)
    if lacking:
        text = "access lists and attributes cannot be compared without getfattr: apt install attr"
        return (SystemCheckResult(good=False, subject=subject, text=text, hinders=False),)
    return ()


def _links(subject: str, run: Callable[[Command], bytes], host: Host | None) -> tuple[SystemCheckResult, ...]:
    """Return a line where rsync can be led by a link, with what closes that. A gate closes it by itself, and lets nobody ask."""
    try:
        seen = run(script_commands.survey_links_command(host)).decode("ascii", "replace").strip()
    except OrchestratorError:
        return ()
    if seen != "open":
        return ()
    text = (
        "rsync may be led elsewhere by a link that the owner of a folder puts there while it runs: that is closed for root on "
        "Linux 5.14 or later, with perl, and in a container only with CAP_SYS_ADMIN"
    )
    return (SystemCheckResult(good=False, subject=subject, text=text, hinders=False),)


def _judge(subject: str, program: RsyncProgram) -> SystemCheckResult:
    version = ".".join(map(str, program.version))
    holes = "; ".join(text for since, text in _HOLES if program.version < since)
    if holes:
        return SystemCheckResult(
            good=False,
            subject=subject,
            text=f"version {version} has known holes, unless your distribution mended them: {holes}",
            hinders=False,
        )
    return SystemCheckResult(good=True, subject=subject, text=f"version {version}")


def _source(folder: Location, seen: SourceSurvey) -> SystemCheckResult:
    subject = f"source {folder}"
    if seen.leads:
        return SystemCheckResult(good=False, subject=subject, text=f"is a link: name {show_name(seen.leads)}")
    if not seen.directory:
        return SystemCheckResult(good=False, subject=subject, text="is not a folder" if seen.exists else "is not there")
    if seen.empty:
        return SystemCheckResult(good=False, subject=subject, text="is empty: is it mounted?")
    return SystemCheckResult(
        good=True, subject=subject, text="is there" + (", a filesystem of its own" if seen.mounted else "")
    )


def _target(job: Job, run: Callable[[Command], bytes]) -> SystemCheckResult:
    root = job.target.location
    parser = partial(parse.parse_target, root=root, mirror=not options_of(job).points)
    seen = ask(run, script_commands.survey_target_command(root), parser)
    subject = f"target {root}"
    if not seen.exists:
        return SystemCheckResult(
            good=seen.parent and not seen.foreign,
            subject=subject,
            text=_NEW[0] if seen.parent else "is not there, and neither is the folder above it",
        )
    if seen.owner is not None and seen.owner != job.identity:
        why, _, hint = explain_marker(job, seen.owner, hint="give each a place of its own")
        return SystemCheckResult(good=False, subject=subject, text=f"{why}: {hint}")
    if seen.dated:
        text = f"holds {show_count(len(seen.dated), 'restore point')}, and a mirror is no place for them: write points = true, or give it a place of its own"
        return SystemCheckResult(good=False, subject=subject, text=text)
    return SystemCheckResult(
        good=True,
        subject=subject,
        text=f"holds {show_count(len(seen.points), 'point')}, {show_size(seen.free_bytes)} free"
        + ("" if seen.mounted else ", not a filesystem of its own"),
    )


def _writable(job: Job, run: Callable[[Command], bytes]) -> tuple[SystemCheckResult, ...]:
    """Return a line for a target where nothing can be written: its filesystem is mounted read-only, or it is another user's."""
    root = job.target.location
    try:
        user, _, *only_read = run(script_commands.survey_filesystem_command(root)).decode("utf-8", "replace").split()
    except (OrchestratorError, ValueError):
        return ()
    if not only_read:
        return ()
    why = "it is mounted read-only" if user == "0" else f"user {user} may not write there, or it is mounted read-only"
    text = f"nothing can be written: {why}; `findmnt -T {shlex.quote(root.path)}` shows how it is mounted"
    return (SystemCheckResult(good=False, subject=f"target {root}", text=text),)


def _filesystem(job: Job, run: Callable[[Command], bytes]) -> tuple[SystemCheckResult, ...]:
    """Return a line for what a target's user or filesystem is known to lose; only a first copy can ask for all of it."""
    root, options = job.target.location, options_of(job)
    try:
        user, kind = run(script_commands.survey_filesystem_command(root)).decode("utf-8", "replace").split()[:2]
    except (OrchestratorError, ValueError):
        return ()
    loses = _LOSES.get(kind, "")
    if not loses and user != "0" and options.owners:
        loses, kind = "owners other than its own", f"user {user}"
    if not loses:
        return ()
    text = f"{kind} there cannot hold {loses}: where the source has such, the first run is refused, with the list"
    return (SystemCheckResult(good=False, subject=f"target {root}", text=text, hinders=False),)


def _try(found: list[SystemCheckResult], subject: str, look: Callable[[], SystemCheckResult]) -> None:
    try:
        found.append(look())
    except OrchestratorError as error:
        found.append(SystemCheckResult(good=False, subject=subject, text=f"{error.why}: {error.hint}"))

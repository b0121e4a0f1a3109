"""The visit of a disk: verify its identity, attach, run its jobs, release, and report when it may be unplugged.

Nothing is written to a disk before its marker is verified, and "safe" is reported only when the device is idle. When a disk is
pulled out during its visit, only its job fails: the mount is removed, and the next visit continues.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from orchestrator.disks import disk as medium
from orchestrator.disks import power as asleep
from orchestrator.disks.detect import pools_without_disk, survey_devices
from orchestrator.disks.errors import DiskBusy, DiskLocked, FilesystemNeedsCheck, PoolHangs, PoolTooNew, with_disk_named
from orchestrator.disks.release import release_disk
from orchestrator.disks.smart import ask_health
from orchestrator.domain.authentication import tag_marker
from orchestrator.domain.command_line import quoted
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.errors import NotNow, OrchestratorError, Stalled
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import (
    AT_MACHINE,
    ATTACHED,
    IN_TRANSIT,
    POOL_PREFIX,
    Disk,
    DiskMarker,
    DiskRecord,
    DiskState,
    RotationSet,
)
from orchestrator.domain.run import UNRECORDED, Outcome, RunReport, VisitCause
from orchestrator.domain.units import Bytes
from orchestrator.history.authentication_key import obtain_key
from orchestrator.history.store import History
from orchestrator.planners.identify_disk import (
    HANGS,
    NOT_NOW,
    RESTART,
    DeviceState,
    IdentifiedDevice,
    VisitOutcome,
    VisitResult,
    identify_devices,
    identify_twins,
    verify_identity,
)
from orchestrator.process.executor import Writer
from orchestrator.runner.disk.lease import DiskLeased, LeasePurpose, find_lease, lease_by_hand, refuse_leased
from orchestrator.runner.disk.released import (
    forget_released,
    is_released,
    note_released,
    released_hint,
    released_sentence,
)
from orchestrator.runner.disk.state import find_disk_record, job_on_disk, was_tagged
from orchestrator.runner.locks import is_visited, lock_visit

WELL = (Outcome.DONE, Outcome.NOTHING, Outcome.INCOMPLETE)


class DiskReleased(NotNow):
    """A disk that was said to be safe to remove, and was not away since."""


_STATES = {
    DiskLocked: DeviceState.LOCKED, FilesystemNeedsCheck: DeviceState.NEEDS_CHECK, PoolTooNew: DeviceState.TOO_NEW,
    DiskLeased: DeviceState.LEASED, DiskReleased: DeviceState.RELEASED, NotNow: DeviceState.VISITED,
}  # fmt: skip
_FRESH = timedelta(seconds=5)  # after that, a look at an attached disk says nothing any more
READ_TURN = "read again on"  # a small fact of a job: when its copies on a disk were last read again in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitContext:
    """The context of visits. `writer`: one that a stop request does not end, because an attached disk must be released.

    `owner`, `host`: this machine, by an id and by name. `state`: the directory of locks and small files. `cause`: who began them;
    what is automatic leaves a disk alone that a restore waits for, or that was said to be safe to remove.
    """

    history: History
    writer: Writer
    clock: Callable[[], datetime]
    owner: str
    host: str
    state: str
    say: Callable[[str], None]
    cause: VisitCause = VisitCause.BY_HAND


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetReadResult:
    """The result of a reading within a budget. `read`: bytes."""

    report: RunReport
    read: int


Run = Callable[[Job], RunReport]
T = TypeVar("T")


class BudgetReader(Protocol):
    """A function that reads copies of a job again, within a budget."""

    def __call__(self, job: Job, /, *, budget: Bytes) -> BudgetReadResult:
        """Read the copies and return the result."""
        ...


def survey_disks(sets: Sequence[RotationSet], visit_context: VisitContext) -> tuple[IdentifiedDevice, ...]:
    """Return every device that is an enrolled disk, or was plugged in. Raises: OutsideError."""
    disks = [disk for rotation in sets for disk in rotation.disks]
    found = _identified(disks, visit_context)
    if any(each.state is DeviceState.READ_ONLY for each in found):
        found = _without_other_looks(found, disks, visit_context)
    _bury(disks, found, visit_context)
    return found


def _identified(disks: Sequence[Disk], visit_context: VisitContext) -> tuple[IdentifiedDevice, ...]:
    return identify_devices(
        survey_devices(visit_context.writer), disks, visit_context.history.disks.known(), pools_without_disk(disks)
    )


def _without_other_looks(
    found: Sequence[IdentifiedDevice], disks: Sequence[Disk], visit_context: VisitContext
) -> tuple[IdentifiedDevice, ...]:
    """Return the devices without what another visit causes: it makes a disk read-only while it reads the marker.

    A disk that is visited is here, and the lock of the visit decides; where the visit ended meanwhile, a second look counts.
    """
    visited = {
        each.disk.identity
        for each in found
        if each.disk and each.state is DeviceState.READ_ONLY and is_visited(each.disk, visit_context.state)
    }
    return tuple(
        replace(
            each, state=DeviceState.TO_VERIFY, says=f"disk {each.disk.called} is here ({each.device.path})", hint=""
        )
        if each.disk and each.state is DeviceState.READ_ONLY and each.disk.identity in visited
        else each
        for each in _identified(disks, visit_context)
    )


def _bury(disks: Sequence[Disk], found: Sequence[IdentifiedDevice], visit_context: VisitContext) -> None:
    """Record visits that died without an end as interrupted."""
    book = visit_context.history.disks
    here = {each.disk.name for each in found if each.disk and each.state is not DeviceState.HELD}
    for known in (each for each in book.known() if each.disk in book.being_visited()):
        disk = next((each for each in disks if each.identity == known.identity), None)
        with suppress(NotNow), lock_visit(disk, visit_context.state) if disk else nullcontext():
            book.visits_died(
                known.disk, "poolferry, or the machine, ended in the middle of it; the next visit continues"
            )
            book.is_at(known.disk, AT_MACHINE if known.name in here else IN_TRANSIT, note="", now=visit_context.clock())


class AttachedDisk:
    """An attached disk, from the first write on it to its release.

    `pools_without_disk`: the lock of the visit; `health`: as in DiskVisit.
    """

    def __init__(
        self,
        disk: Disk,
        device: BlockDevice,
        marker: DiskMarker,
        visit_context: VisitContext,
        held: ExitStack,
        *,
        health: str | None,
    ) -> None:
        self.disk = disk
        self._held = held
        self.reports: list[RunReport] = []
        self.readings: list[RunReport] = []
        self.failure: OrchestratorError | None = None
        self._attached_at = visit_context.clock()
        self._fresh = True
        self._device, self._visit, self._health = device, visit_context, health
        self._known = _remember(disk, device, marker, visit_context)
        book = visit_context.history.disks
        self._number = book.begin_visit(self._known.disk, visit_context.clock())
        book.is_at(self._known.disk, ATTACHED, note="", now=visit_context.clock())
        book.visit_health(self._number, health)
        if health:
            visit_context.say(f"warning: disk {disk.called}: {health}")
        if not marker.authentication:
            visit_context.say(f"disk {disk.called}: its marker gets the tag of this host's key, which is new")
        try:
            _mark(disk, replace(marker, generation=self._known.generation + 1), visit_context)
        except OrchestratorError as error:
            self.failure = error

    def run(self, job: Job, run: Run) -> RunReport | None:
        """Run one job, placed on the disk; return None when the disk can no longer be written."""
        report = self._with(job, run)
        if report is not None and report.run != UNRECORDED:
            self.reports.append(report)
        return report

    def read_again(self, jobs: Sequence[Job], budget: Bytes, read: BudgetReader) -> None:
        """Read copies of the jobs again until the budget is used up: first the job whose last turn is the oldest."""
        if any(report.outcome is Outcome.INTERRUPTED for report in self.reports):
            return
        views, left = self._visit.history.views, int(budget)
        turns = {job.name: views.memory(job.name).get(f"{READ_TURN} {self.disk.name}", "") for job in jobs}
        for job in sorted(jobs, key=lambda job: turns[job.name]):
            done = self._with(job, partial(read, budget=Bytes(left)))
            if done is None:
                return
            self.readings.append(done.report)
            self._visit.history.remember(job.name, f"{READ_TURN} {self.disk.name}", self._visit.clock().isoformat())
            left -= done.read
            if left <= 0 or done.report.outcome is Outcome.INTERRUPTED:
                return

    def read_promised(self, jobs: Sequence[Job], read: Callable[[Job], BudgetReadResult | None]) -> None:
        """Read again what the jobs promise for this disk, as much as is its part of the time since the last visit."""
        for job in jobs:
            if any(each.outcome is Outcome.INTERRUPTED for each in (*self.reports, *self.readings)):
                return
            if job.verify.read_all_within is not None and (done := self._with(job, read)) is not None:
                self.readings.append(done.report)

    def _with(self, job: Job, do: Callable[[Job], T]) -> T | None:
        if self.failure is not None:
            return None
        placed = job_on_disk(job, self.disk, self._device.name)
        try:
            self._look_again()
            medium.prepare(self.disk, placed.target.location.path, self._visit.writer)
        except OrchestratorError as error:
            self.failure = error
            return None
        return do(placed)

    def _look_again(self) -> None:
        """Check that the disk is still attached as before. Raises: OrchestratorError. Skipped before the first job, if it begins at once."""
        fresh, self._fresh = self._fresh, False
        if fresh and abs(self._visit.clock() - self._attached_at) < _FRESH:
            return
        there = _present(self._device, self._visit)
        if there is None:
            raise OrchestratorError(f"disk {self.disk.name} was pulled out", hint="plug it in again")
        use = medium.use(self.disk, there, self._visit.writer)
        if use.ails:
            raise OrchestratorError(use.ails, hint=_check(self._device))
        if not use.attached:
            raise OrchestratorError(
                f"disk {self.disk.name} is not attached any more: somebody else let it go",
                hint="unplug it and plug it in again",
            )

    def end(self, *, power_off: bool) -> VisitResult:
        """Release the disk in every case, and record how the visit ended."""
        with self._held:
            return self._ends(power_off=power_off)

    def hold(self, held: ExitStack) -> None:
        """Keep the lock of the visit until its end."""
        self._held = held

    def leave(self) -> None:
        """End the visit of a disk that stays attached: a person wants to inspect it."""
        with self._held:
            lease_by_hand(self.disk, self._device, self._visit.state, self._visit.clock())
            self._visit.history.disks.visit_ended(
                self._number, jobs=[], outcome=ATTACHED, why="by hand", released=None, safe=False
            )

    def _ends(self, *, power_off: bool) -> VisitResult:
        visit_context, book = self._visit, self._visit.history.disks
        wanted = find_lease(self.disk, visit_context.state, visit_context.clock())
        if wanted is not None and wanted.kind is LeasePurpose.REQUESTED and power_off:
            visit_context.say(f"{wanted.says}; {wanted.hint}")
            power_off = False
        ended = self._released(power_off=power_off)
        if ended.safe:
            note_released(self.disk, self._device, visit_context.state)
        book.visit_ended(
            self._number, jobs=[report.job for report in self.reports], outcome=ended.ending, why=ended.why,
            released=visit_context.clock() if ended.safe else None, safe=ended.safe, beside=ended.beside,
        )  # fmt: skip
        gone = ended.ending is VisitOutcome.PULLED_OUT or (ended.safe and power_off)
        if gone or ended.safe:
            book.is_at(self._known.disk, IN_TRANSIT if gone else AT_MACHINE, note="", now=visit_context.clock())
        return ended

    def _released(self, *, power_off: bool) -> VisitResult:
        name, writer = self.disk.name, self._visit.writer
        if _present(self._device, self._visit) is None:
            return self._pulled_out()
        try:
            ails = medium.use(self.disk, self._device, writer).ails
            medium.detach(self.disk, writer)
            hangs = asleep.socket_of(self._device.disk)
            released = release_disk(self._device, writer, power_off=power_off)
        except OrchestratorError as error:
            if _present(self._device, self._visit) is None:
                return self._hanging() if isinstance(error, PoolHangs) else self._pulled_out()
            ending = VisitOutcome.BUSY if isinstance(error, DiskBusy) else VisitOutcome.FAILED
            hint = with_disk_named(error, name, self._device.path).hint
            return self._ended(ending, f"disk {name} cannot be let go: {error.why}", hint)
        if released.hinders:
            return self._ended(
                VisitOutcome.BUSY,
                f"disk {name} is not quiet: {released.hinders}",
                f"{released.hint}, then: poolferry disks eject {name}",
            )
        if hangs is not None and _present(self._device, self._visit) is None:
            asleep.note_asleep(self.disk, hangs)
        if ails:
            return self._ended(
                VisitOutcome.INCOMPLETE, ails, _check(self._device), DeviceState.NEEDS_CHECK, released.beside
            )
        return self._done(released.beside)

    def _pulled_out(self) -> VisitResult:
        """Remove what was above the unplugged disk, as far as the kernel allows it; the next visit tries again."""
        with suppress(OrchestratorError):
            medium.abandon(self.disk, self._visit.writer)
        why = f"disk {self.disk.name} was pulled out; nothing older on it was damaged"
        hint = "plug it in again: the copy continues where it was cut"
        try:
            waits = medium.is_still_imported(self.disk, self._visit.writer)
        except Stalled:
            return self._hanging()
        if not waits:
            return self._ended(VisitOutcome.PULLED_OUT, why, hint)
        told = f"{hint}; its pool waits for it, and if it never comes back only a restart of this machine takes the pool away"
        return self._ended(VisitOutcome.PULLED_OUT, why, told, DeviceState.HELD)

    def _hanging(self) -> VisitResult:
        """Return the end of a visit when OpenZFS hangs: it keeps the lost disk's pool, and a lock of all pools."""
        why = (
            f"disk {self.disk.name} was pulled out while its pool was let go, and OpenZFS hangs in the kernel; nothing older "
            "on it was damaged"
        )
        return self._ended(VisitOutcome.PULLED_OUT, why, RESTART, DeviceState.HELD)

    def _done(self, beside: str) -> VisitResult:
        bad = next((report for report in (*self.reports, *self.readings) if report.outcome not in WELL), None)
        if self.failure is not None:
            return self._ended(VisitOutcome.INCOMPLETE, self.failure.why, self.failure.hint, beside=beside)
        if bad is not None:
            return self._ended(VisitOutcome.INCOMPLETE, f"{bad.job}: {bad.why}", bad.hint, beside=beside)
        why = ", ".join(report.job for report in self.reports) or "no job had to run"
        return self._ended(VisitOutcome.DONE, why, "", beside=beside)

    def _ended(
        self, ending: VisitOutcome, why: str, hint: str, seen: DeviceState = DeviceState.READY, beside: str = ""
    ) -> VisitResult:
        safe = ending in (VisitOutcome.DONE, VisitOutcome.INCOMPLETE)
        return VisitResult(
            disk=self.disk,
            ending=ending,
            seen=seen,
            why=why,
            hint=hint,
            safe=safe,
            reports=tuple(self.reports),
            readings=tuple(self.readings),
            beside=beside,
            health=self._health,
            only_read=self._visit.cause is VisitCause.RESTORE,
        )


def begin_visit(
    found: IdentifiedDevice, visit_context: VisitContext, *, reuse: bool = False
) -> AttachedDisk | VisitResult:
    """Verify a disk that `survey_disks` found and attach it; return a finished visit when this is not possible.

    `reuse`: also automatically, when it was said to be safe to remove.
    """
    disk = found.disk
    if disk is None or found.state is not DeviceState.TO_VERIFY:
        raise ValueError(found.state)
    with ExitStack() as lock:
        try:
            lock.enter_context(lock_visit(disk, visit_context.state))
            _refuse_held(disk, visit_context, reuse=reuse)
            key = obtain_key(visit_context.state, visit_context.clock())
            marker = medium.peek(disk, found.device, visit_context.writer)
            known = find_disk_record(visit_context.history.disks.known(), disk)
            tagged = was_tagged(known, key, visit_context.history.views)
            verified = verify_identity(disk, found.device, marker, known, visit_context.owner, key=key, tagged=tagged)
            if verified.state is not DeviceState.READY or marker is None:
                medium.detach(disk, visit_context.writer)
                if known is not None:
                    _note_refused(known, verified.says, visit_context)
                return _refused(disk, verified.state, verified.says, verified.hint)
            health = ask_health(
                found.device, visit_context.writer
            )  # before attaching: some bridges reset when they are queried
            if twin := _twin(disk, found.device, visit_context):
                medium.detach(disk, visit_context.writer)
                return _refused(disk, twin.state, twin.says, twin.hint)
            medium.attach(disk, found.device, visit_context.writer)
        except OrchestratorError as error:
            if _present(found.device, visit_context) is None:
                return _gone(disk)
            if isinstance(error, Stalled) and pools_without_disk([disk]):
                return _hangs(disk)
            state = next(
                (state for kind, state in _STATES.items() if isinstance(error, kind)), DeviceState.NOT_VERIFIED
            )
            hint = with_disk_named(error, disk.name, found.device.path).hint
            why = error.why if state in NOT_NOW else f"disk {disk.name} cannot be used: {error.why}"
            return _refused(disk, state, why, hint)
        try:
            attached = AttachedDisk(disk, found.device, marker, visit_context, lock, health=health)
        except OrchestratorError:  # such as a history whose disk is full: nobody would let go of it
            with suppress(OrchestratorError):
                medium.detach(disk, visit_context.writer)
            raise
        attached.hold(lock.pop_all())
        return attached


def _twin(disk: Disk, device: BlockDevice, visit_context: VisitContext) -> IdentifiedDevice | None:
    """Report a copy of the disk that came while its marker was read: plugged in together, one of them is seen first."""
    nodes = f"/dev/mapper/{POOL_PREFIX}"
    devices = survey_devices(visit_context.writer, (device.path,))
    return identify_twins(
        device, disk, [each for each in devices if not each.parts and not each.path.startswith(nodes)]
    )


def _refuse_held(disk: Disk, visit_context: VisitContext, *, reuse: bool) -> None:
    """Check that nobody else uses the disk or waits for it; the caller holds the lock of its visit. Raises: NotNow."""
    automatic = visit_context.cause is VisitCause.AUTOMATIC
    refuse_leased(disk, visit_context.state, visit_context.clock(), requests=automatic)
    if automatic and not reuse and is_released(disk, visit_context.state):
        raise DiskReleased(released_sentence(disk), hint=released_hint(disk))
    forget_released(disk, visit_context.state)


def _note_refused(known: DiskRecord, says: str, visit_context: VisitContext) -> None:
    """Record the visit of a disk that is not the one it looks like, so that `disks` and the channels name it until ours comes."""
    book = visit_context.history.disks
    last = book.last_visits().get(known.disk)
    if last is not None and (last.outcome, last.why) == (VisitOutcome.REFUSED, says):
        return  # as each try of each job would find it
    number = book.begin_visit(known.disk, visit_context.clock())
    book.visit_ended(number, jobs=[], outcome=VisitOutcome.REFUSED, why=says, released=None, safe=False)


def _check(device: BlockDevice) -> str:
    return (
        "unplug it and plug it in again: it is checked then, and the copy continues; if that comes back: "
        f"`smartctl -a {quoted(device.path)}`, and another cable"
    )


def _hangs(disk: Disk) -> VisitResult:
    return _refused(disk, DeviceState.HELD, f"the pool of disk {disk.name} {HANGS}; nothing was written to it", RESTART)


def _gone(disk: Disk) -> VisitResult:
    why = f"disk {disk.name} was pulled out before it was attached, or it no longer answers; nothing was written to it"
    return VisitResult(
        disk=disk, ending=VisitOutcome.PULLED_OUT, seen=DeviceState.SILENT, why=why, hint="plug it in again", safe=False
    )


def _refused(disk: Disk, state: DeviceState, says: str, hint: str) -> VisitResult:
    return VisitResult(disk=disk, ending=VisitOutcome.REFUSED, seen=state, why=says, hint=hint, safe=True)


def _mark(disk: Disk, marker: DiskMarker, visit_context: VisitContext) -> None:
    """Write the next generation: first decided, then on the disk, then recorded as written."""
    book = visit_context.history.disks
    key = obtain_key(visit_context.state, visit_context.clock())
    book.decide_generation(marker.disk, marker.generation)
    medium.mark(disk, tag_marker(marker, disk, key), visit_context.writer, f"{visit_context.state}/notes")
    book.generation_written(marker.disk, marker.generation)


def _remember(disk: Disk, device: BlockDevice, marker: DiskMarker, visit_context: VisitContext) -> DiskRecord:
    """Return history's record of the disk; if lost, the data of its marker. Size and serial are today's."""
    book = visit_context.history.disks
    own = find_disk_record(book.known(), disk)
    if own is None:
        own = DiskRecord(
            disk=marker.disk, name=disk.name, set=disk.set, identity=disk.identity, content=disk.content, size=0, serial="",
            model="", wwn="", generation=marker.generation, written=marker.generation, enrolled=visit_context.clock(),
            standing=DiskState.ACTIVE,
        )  # fmt: skip
    own = replace(own, size=device.size, serial=device.serial, model=device.model, wwn=device.wwn)
    book.keep(own)
    return own


def _present(device: BlockDevice, visit_context: VisitContext) -> BlockDevice | None:
    """Return the device, if it is still here with the same content. A device that does not answer is not."""
    try:
        devices = survey_devices(visit_context.writer, (device.path,))
    except OrchestratorError:
        return None
    found = next((each for each in devices if each.name == device.name), None)
    return found if found is not None and found.answers and found.uuid == device.uuid else None

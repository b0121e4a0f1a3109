"""The visit of a disk: verify its identity, attach, run its jobs, release, and report when it may be unplugged.

Nothing is written on a disk before its marker is proved, and "safe" is said only when the device is quiet. A disk that
is pulled out in the middle harms nobody else: its job fails, the mount is taken away, and the next visit goes on.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

from orchestrator.disks import disk as medium
from orchestrator.disks import power as asleep
from orchestrator.disks.detect import held, survey_devices
from orchestrator.disks.errors import Busy, Hangs, Locked, NeedsCheck, TooNew
from orchestrator.disks.release import let_go
from orchestrator.disks.smart import ask_health
from orchestrator.domain.device import Device
from orchestrator.domain.errors import NotNow, OrchestratorError, Stalled
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import Disk, Known, Marker, RotationSet, Standing
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import Bytes
from orchestrator.history.store import History
from orchestrator.planners.identify_disk import HANGS, RESTART, Ending, Recognised, State, Visited, prove, recognise
from orchestrator.process.executor import Writer
from orchestrator.runner.disk.state import find_known, on_disk
from orchestrator.runner.locks import visiting

WELL = (Outcome.DONE, Outcome.NOTHING)
ATTACHED = "attached"
IN_TRANSIT = "in transit"
HERE = "here"
_STATES = {
    Locked: State.LOCKED, NeedsCheck: State.NEEDS_CHECK, TooNew: State.TOO_NEW, NotNow: State.VISITED,
}  # fmt: skip
TURN = "read again on"  # a small fact of a job: when its copies on a disk had their turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Dock:
    """The context of visits. `writer`: one that no stop ends, because an attached disk must be released.

    `owner`, `host`: this machine, by an id and by name. `state`: the directory of locks and small files.
    """

    history: History
    writer: Writer
    clock: Callable[[], datetime]
    owner: str
    host: str
    state: str
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """The result of a reading within a budget. `read`: bytes."""

    report: RunReport
    read: int


Run = Callable[[Job], RunReport]
T = TypeVar("T")


class Read(Protocol):
    """A function that reads copies of a job again, within a budget."""

    def __call__(self, job: Job, /, *, budget: Bytes) -> Reread:
        """Read the copies and return the result."""
        ...


def look(sets: Sequence[RotationSet], dock: Dock) -> tuple[Recognised, ...]:
    """Return every device that is an enrolled disk, or was plugged in. Raises: OutsideError."""
    disks = [disk for rotation in sets for disk in rotation.disks]
    found = recognise(survey_devices(dock.writer), disks, dock.history.disks.known(), held(disks))
    _bury(disks, found, dock)
    return found


def _bury(disks: Sequence[Disk], found: Sequence[Recognised], dock: Dock) -> None:
    """Record visits that died without an end as interrupted."""
    book = dock.history.disks
    here = {each.disk.name for each in found if each.disk and each.state is not State.HELD}
    for known in (each for each in book.known() if each.disk in book.being_visited()):
        disk = next((each for each in disks if each.identity == known.identity), None)
        with suppress(NotNow), visiting(disk, dock.state) if disk else nullcontext():
            book.visits_died(known.disk, "poolferry, or the machine, ended in the middle of it; the next visit goes on")
            book.is_at(known.disk, HERE if known.name in here else IN_TRANSIT, note="", now=dock.clock())


class Stay:
    """An attached disk, from the first write on it to its release. `held`: the lock of the visit; `health`: see Visit."""

    def __init__(
        self, disk: Disk, device: Device, marker: Marker, dock: Dock, held: ExitStack, *, health: str | None
    ) -> None:
        self.disk = disk
        self._held = held
        self.reports: list[RunReport] = []
        self.readings: list[RunReport] = []
        self.failure: OrchestratorError | None = None
        self._fresh = True
        self._device, self._dock, self._health = device, dock, health
        self._known = _remember(disk, device, marker, dock)
        book = dock.history.disks
        self._number = book.begin_visit(self._known.disk, dock.clock())
        book.is_at(self._known.disk, ATTACHED, note="", now=dock.clock())
        book.visit_health(self._number, health)
        if health:
            dock.say(f"warning: disk {disk.called}: {health}")
        try:
            _mark(disk, replace(marker, generation=self._known.generation + 1), dock)
        except OrchestratorError as error:
            self.failure = error

    def run(self, job: Job, run: Run) -> RunReport | None:
        """Run one job, placed on the disk; return None when the disk can no longer be written."""
        report = self._with(job, run)
        if report is not None:
            self.reports.append(report)
        return report

    def read_again(self, jobs: Sequence[Job], budget: Bytes, read: Read) -> None:
        """Read copies of the jobs again until the budget is used up: first the job whose last turn is the oldest."""
        if any(report.outcome is Outcome.INTERRUPTED for report in self.reports):
            return
        views, left = self._dock.history.views, int(budget)
        turns = {job.name: views.memory(job.name).get(f"{TURN} {self.disk.name}", "") for job in jobs}
        for job in sorted(jobs, key=lambda job: turns[job.name]):
            done = self._with(job, partial(read, budget=Bytes(left)))
            if done is None:
                return
            self.readings.append(done.report)
            self._dock.history.remember(job.name, f"{TURN} {self.disk.name}", self._dock.clock().isoformat())
            left -= done.read
            if left <= 0 or done.report.outcome is Outcome.INTERRUPTED:
                return

    def _with(self, job: Job, do: Callable[[Job], T]) -> T | None:
        if self.failure is not None:
            return None
        placed = on_disk(job, self.disk, self._device.name)
        try:
            self._look_again()
            medium.prepare(self.disk, placed.target.location.path, self._dock.writer)
        except OrchestratorError as error:
            self.failure = error
            return None
        return do(placed)

    def _look_again(self) -> None:
        """Check that the disk is still attached as before. Raises: OrchestratorError. Skipped before the first job."""
        if self._fresh:
            self._fresh = False
            return
        there = _present(self._device, self._dock)
        if there is None:
            raise OrchestratorError(f"disk {self.disk.name} was pulled out", cure="plug it in again")
        use = medium.use(self.disk, there, self._dock.writer)
        if use.ails:
            raise OrchestratorError(use.ails, cure=_check(self._device))
        if not use.attached:
            raise OrchestratorError(
                f"disk {self.disk.name} is not attached any more: somebody else let it go",
                cure="unplug it and plug it in again",
            )

    def end(self, *, power_off: bool) -> Visited:
        """Release the disk in every case, and record how the visit ended."""
        with self._held:
            return self._ends(power_off=power_off)

    def leave(self) -> None:
        """End the visit of a disk that stays attached: a person wants to inspect it."""
        with self._held:
            self._dock.history.disks.visit_ended(
                self._number, jobs=[], outcome=ATTACHED, why="by hand", released=None, safe=False
            )

    def _ends(self, *, power_off: bool) -> Visited:
        ended = self._released(power_off=power_off)
        dock, book = self._dock, self._dock.history.disks
        book.visit_ended(
            self._number, jobs=[report.job for report in self.reports], outcome=ended.ending, why=ended.why,
            released=dock.clock() if ended.safe else None, safe=ended.safe,
        )  # fmt: skip
        gone = ended.ending is Ending.PULLED_OUT or (ended.safe and power_off)
        if gone or ended.safe:
            book.is_at(self._known.disk, IN_TRANSIT if gone else HERE, note="", now=dock.clock())
        return ended

    def _released(self, *, power_off: bool) -> Visited:
        name, writer = self.disk.name, self._dock.writer
        if _present(self._device, self._dock) is None:
            return self._pulled_out()
        try:
            ails = medium.use(self.disk, self._device, writer).ails
            medium.detach(self.disk, writer)
            hangs = asleep.socket_of(self._device.disk)
            released = let_go(self._device, writer, power_off=power_off)
        except OrchestratorError as error:
            if _present(self._device, self._dock) is None:
                return self._hanging() if isinstance(error, Hangs) else self._pulled_out()
            ending = Ending.BUSY if isinstance(error, Busy) else Ending.FAILED
            return self._ended(ending, f"disk {name} cannot be let go: {error.why}", error.cure)
        if released.hinders:
            return self._ended(
                Ending.BUSY,
                f"disk {name} is not quiet: {released.hinders}",
                f"wait, then: poolferry disks eject {name}",
            )
        if hangs is not None and _present(self._device, self._dock) is None:
            asleep.fell_asleep(self.disk, hangs)
        if ails:
            return self._ended(Ending.INCOMPLETE, ails, _check(self._device), State.NEEDS_CHECK, released.beside)
        return self._done(released.beside)

    def _pulled_out(self) -> Visited:
        """Remove what was above the unplugged disk, as far as the kernel allows it; the next visit tries again."""
        with suppress(OrchestratorError):
            medium.abandon(self.disk, self._dock.writer)
        why = f"disk {self.disk.name} was pulled out; nothing older on it was damaged"
        cure = "plug it in again: the copy goes on where it was cut"
        try:
            waits = medium.is_held(self.disk, self._dock.writer)
        except Stalled:
            return self._hanging()
        if not waits:
            return self._ended(Ending.PULLED_OUT, why, cure)
        told = f"{cure}; its pool waits for it, and if it never comes back only a restart of this machine takes the pool away"
        return self._ended(Ending.PULLED_OUT, why, told, State.HELD)

    def _hanging(self) -> Visited:
        """Return the end of a visit when OpenZFS hangs: it keeps the lost disk's pool, and a lock of all pools."""
        why = (
            f"disk {self.disk.name} was pulled out while its pool was let go, and OpenZFS hangs in the kernel; nothing older "
            "on it was damaged"
        )
        return self._ended(Ending.PULLED_OUT, why, RESTART, State.HELD)

    def _done(self, beside: str) -> Visited:
        bad = next((report for report in (*self.reports, *self.readings) if report.outcome not in WELL), None)
        if self.failure is not None:
            return self._ended(Ending.INCOMPLETE, self.failure.why, self.failure.cure, beside=beside)
        if bad is not None:
            return self._ended(Ending.INCOMPLETE, f"{bad.job}: {bad.why}", bad.cure, beside=beside)
        why = ", ".join(report.job for report in self.reports) or "no job had to run"
        return self._ended(Ending.DONE, why, "", beside=beside)

    def _ended(self, ending: Ending, why: str, cure: str, seen: State = State.READY, beside: str = "") -> Visited:
        safe = ending in (Ending.DONE, Ending.INCOMPLETE)
        return Visited(
            disk=self.disk,
            ending=ending,
            seen=seen,
            why=why,
            cure=cure,
            safe=safe,
            reports=tuple(self.reports),
            readings=tuple(self.readings),
            beside=beside,
            health=self._health,
        )


def begin_visit(found: Recognised, dock: Dock) -> Stay | Visited:
    """Verify a disk that `look` found and attach it; return a finished visit when this is not possible."""
    disk = found.disk
    if disk is None or found.state is not State.TO_PROVE:
        raise ValueError(found.state)
    with ExitStack() as lock:
        try:
            lock.enter_context(visiting(disk, dock.state))
            marker = medium.peek(disk, found.device, dock.writer)
            proved = prove(disk, found.device, marker, find_known(dock.history.disks.known(), disk), dock.owner)
            if proved.state is not State.READY or marker is None:
                medium.detach(disk, dock.writer)
                return _refused(disk, proved.state, proved.says, proved.cure)
            health = ask_health(found.device, dock.writer)  # before: there are bridges that such a question resets
            medium.attach(disk, found.device, dock.writer)
        except OrchestratorError as error:
            if _present(found.device, dock) is None:
                return _gone(disk)
            if isinstance(error, Stalled) and held([disk]):
                return _hangs(disk)
            state = next((state for kind, state in _STATES.items() if isinstance(error, kind)), State.NOT_PROVED)
            cure = error.cure.replace("DEVICE", found.device.path)
            return _refused(disk, state, f"disk {disk.name} cannot be used: {error.why}", cure)
        return Stay(disk, found.device, marker, dock, lock.pop_all(), health=health)


def _check(device: Device) -> str:
    return (
        "unplug it and plug it in again: it is checked then, and the copy goes on; if that comes back: "
        f"`smartctl -a {device.path}`, and another cable"
    )


def _hangs(disk: Disk) -> Visited:
    return _refused(disk, State.HELD, f"the pool of disk {disk.name} {HANGS}; nothing was written to it", RESTART)


def _gone(disk: Disk) -> Visited:
    why = f"disk {disk.name} was pulled out before it was attached, or it no longer answers; nothing was written to it"
    return Visited(disk=disk, ending=Ending.PULLED_OUT, seen=State.SILENT, why=why, cure="plug it in again", safe=False)


def _refused(disk: Disk, state: State, says: str, cure: str) -> Visited:
    return Visited(disk=disk, ending=Ending.REFUSED, seen=state, why=says, cure=cure, safe=True)


def _mark(disk: Disk, marker: Marker, dock: Dock) -> None:
    """Write the next generation: first decided, then on the disk, then recorded as written."""
    book = dock.history.disks
    book.decide_generation(marker.disk, marker.generation)
    medium.mark(disk, marker, dock.writer, f"{dock.state}/notes")
    book.generation_written(marker.disk, marker.generation)


def _remember(disk: Disk, device: Device, marker: Marker, dock: Dock) -> Known:
    """Return history's record of the disk; if lost, the data of its marker. Size and serial are today's."""
    book = dock.history.disks
    own = find_known(book.known(), disk)
    if own is None:
        own = Known(
            disk=marker.disk, name=disk.name, set=disk.set, identity=disk.identity, content=disk.content, size=0, serial="",
            model="", wwn="", generation=marker.generation, written=marker.generation, enrolled=dock.clock(),
            standing=Standing.ACTIVE,
        )  # fmt: skip
    own = replace(own, size=device.size, serial=device.serial, model=device.model, wwn=device.wwn)
    book.keep(own)
    return own


def _present(device: Device, dock: Dock) -> Device | None:
    """Return the device, if it is still here with the same content. A device that does not answer is not."""
    try:
        devices = survey_devices(dock.writer, (device.path,))
    except OrchestratorError:
        return None
    found = next((each for each in devices if each.name == device.name), None)
    return found if found is not None and found.answers and found.uuid == device.uuid else None

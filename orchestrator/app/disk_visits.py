"""Visits of removable disks, for the commands that make them: the present disks, their order, the messages."""

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Self

from orchestrator import compose
from orchestrator.app.hotplug import find_plugged_in
from orchestrator.app.settings import WrongRequest
from orchestrator.config.models import Configuration
from orchestrator.config.this_machine import machine_id_hash
from orchestrator.disks.power import wake_disks
from orchestrator.domain.errors import NotNow, OrchestratorError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.rotation import POOL_PREFIX, Disk, RotationSet
from orchestrator.domain.run import RunReport, VisitCause
from orchestrator.domain.units import show_count
from orchestrator.planners.identify_disk import (
    NOT_NOW,
    DeviceState,
    IdentifiedDevice,
    VisitOutcome,
    VisitResult,
)
from orchestrator.planners.rotation import (
    choose_disk,
    describe_arrival,
    describe_request,
    explain_left_alone,
    judge_set,
)
from orchestrator.process.executor import Writer
from orchestrator.runner.disk.lease import find_lease, hold_disk, is_attached
from orchestrator.runner.disk.released import is_released, released_hint, released_sentence
from orchestrator.runner.disk.state import is_disk_awaited, job_on_disk, jobs_of_set, survey_set_members
from orchestrator.runner.disk.visit import (
    AttachedDisk,
    BudgetReader,
    BudgetReadResult,
    VisitContext,
    begin_visit,
    survey_disks,
)
from orchestrator.views.visits import SetStatus

if TYPE_CHECKING:
    from orchestrator.history.store import History
    from orchestrator.history.views import HistoryReader

Say = Callable[[str], None]


def make_visit_context(
    where: compose.Directories, history: "History", *, say: Say, log: Say, cause: VisitCause = VisitCause.BY_HAND
) -> VisitContext:
    """Build the context that visits need."""
    os.makedirs(os.path.join(where.state, "notes"), mode=0o700, exist_ok=True)
    return VisitContext(
        history=history, writer=Writer(log=log), clock=compose.now, owner=machine_id_hash(), host=os.uname().nodename, state=where.state, say=say, cause=cause,
    )  # fmt: skip


def survey_set(
    rotation: RotationSet,
    jobs: Iterable[Job],
    views: "HistoryReader",
    *,
    now: datetime,
    here: Iterable[str] | None = None,
    waits: bool = False,
) -> SetStatus:
    """Return the state of a set at `now`. `here`: names of plugged-in disks; by default from udev's links.

    `waits`: a run that nobody has recorded yet waits for a disk.
    """
    local, here = now.astimezone(), find_plugged_in(rotation) if here is None else tuple(here)
    users = jobs_of_set(rotation, jobs)
    own = survey_set_members(rotation, users, views, here, now=now)
    disk_request, health = choose_disk(rotation, own, local), judge_set(rotation, own, local)
    waits = waits or is_disk_awaited(users, views, disk_request.visited)
    describe = partial(describe_request, rotation, disk_request, health, local, here, waits=waits)
    return SetStatus(
        rotation=rotation,
        disk_request=disk_request,
        health=health,
        request=describe(),
        short_request=describe(age=False),
    )


def find_disk(known: Configuration, name: str) -> tuple[RotationSet, Disk]:
    """Return the set of the disk of that name, and the disk. Raises: WrongRequest."""
    found = [(each, disk) for each in known.sets for disk in each.disks if disk.name == name]
    if not found:
        names = ", ".join(disk.name for each in known.sets for disk in each.disks)
        raise WrongRequest(f"there is no disk {name}; " + (f"one of {names}" if names else "none is enrolled"))
    return found[0]


class DiskInUse(NotNow):
    """A disk that another visit, a restore or a person uses: nothing is wrong, and nothing is recorded."""


class PluggedInDisks:
    """The disks that are plugged in now, by set."""

    def __init__(self, known: Configuration, used: VisitContext, *, awake: bool = False) -> None:
        """Survey the disks. `awake`: disks that were switched off and are still plugged in are woken first."""
        self.known = known
        self.visit_context = used
        if awake:
            self.wake(known.sets)
        self.found = survey_disks(known.sets, used)

    def wake(self, sets: Iterable[RotationSet]) -> bool:
        """Wake the switched-off disks of the sets; return True when there was one."""
        woken = wake_disks([disk for rotation in sets for disk in rotation.disks], self.visit_context.writer)
        for disk in woken:
            self.visit_context.say(f"disk {disk.called} was switched off and is still plugged in: it is used again")
        return bool(woken)

    def look_again(self) -> None:
        """Survey the disks again, as they may have changed."""
        self.found = survey_disks(self.known.sets, self.visit_context)

    def strangers(self) -> tuple[IdentifiedDevice, ...]:
        """Return the devices that were plugged in and cannot be used."""
        return tuple(each for each in self.found if each.state is not DeviceState.TO_VERIFY)

    def usable(self, rotation: RotationSet) -> tuple[IdentifiedDevice, ...]:
        """Return the plugged-in disks of a set, the requested one first."""
        stands = self.standing(rotation)
        turn = [disk.name for disk in (stands.disk_request.disk, *stands.disk_request.others) if disk]
        here = [
            each for each in self.found if each.state is DeviceState.TO_VERIFY and each.disk and each.disk.name in turn
        ]
        return tuple(sorted(here, key=lambda each: turn.index(each.disk.name) if each.disk else 0))

    def standing(self, rotation: RotationSet, *, waits: bool = False) -> SetStatus:
        """Return the state of the set with the plugged-in disks. `waits`: a run of it waits for one."""
        here = self._here()
        views = self.visit_context.history.views
        return survey_set(rotation, self.known.jobs, views, now=compose.now(), here=here, waits=waits)

    def _here(self) -> tuple[str, ...]:
        return tuple(each.disk.name for each in self.found if each.disk and each.state is not DeviceState.HELD)

    def kept(self, rotation: RotationSet) -> tuple[str, ...]:
        """Return why plugged-in disks of the set take no copy now."""
        now = compose.now().astimezone()
        users = jobs_of_set(rotation, self.known.jobs)
        own = survey_set_members(rotation, users, self.visit_context.history.views, now=now)
        here = self._here()
        return tuple(
            told for member in own if member.disk.name in here and (told := explain_left_alone(rotation, member, now))
        )

    def begin(self, found: IdentifiedDevice, rotation: RotationSet) -> AttachedDisk | VisitResult:
        """Begin a visit and report it."""
        say, disk = self.visit_context.say, found.disk
        if disk is None:
            raise ValueError(found.state)
        stands = self.standing(rotation)
        begun = begin_visit(found, self.visit_context, reuse=rotation.use_again)
        if isinstance(begun, AttachedDisk):
            say(
                f"{describe_arrival(disk, stands.disk_request)} ({found.device.path}); do not unplug it until it is said to be safe"
            )
            self._note_scrub(disk, rotation)
        if isinstance(begun, VisitResult) and begun.seen in NOT_NOW:
            return begun
        for told in filter(None, (stands.health.all_here, *self.kept(rotation))):
            say(f"warning: {told}")
        return begun

    def _note_scrub(self, disk: Disk, rotation: RotationSet) -> None:
        """Let a scrub of the disk's pool count as a reading of the copies there, before this visit brings new ones."""
        context = self.visit_context
        if disk.content != "zfs":
            return
        from orchestrator.app.scrubbed_copies import note_scrub

        placed = [job_on_disk(job, disk) for job in jobs_of_set(rotation, self.known.jobs)]
        with suppress(OrchestratorError):  # a pool that cannot be looked at is seen by the next visit
            read = note_scrub(
                context.history, Location(path=f"{POOL_PREFIX}{disk.name}"), placed, context.writer, compose.now()
            )
            if read:
                context.say(f"a scrub of disk {disk.called} read {show_count(read, 'point')} again, and all was sound")

    def in_place(self, rotation: RotationSet) -> "DiskInPlace | None":
        """Return a disk of the set that a person attached, held from now on; None: there is none."""
        context = self.visit_context
        for found in self.found:
            disk = found.disk
            if disk is None or disk.set != rotation.name or found.state is not DeviceState.TO_VERIFY:
                continue
            lease = find_lease(disk, context.state, compose.now(), requests=False)
            if lease is not None and is_attached(disk):
                with ExitStack() as held:
                    held.enter_context(hold_disk(disk, "a restore", context.state, compose.now()))
                    return DiskInPlace(found, disk, held.pop_all())
        return None

    def released(self, rotation: RotationSet) -> VisitResult | None:
        """Return why a disk of the set that is plugged in is not used: it was said to be safe to remove."""
        state = self.visit_context.state
        disk = next((each for each in rotation.disks if not rotation.use_again and is_released(each, state)), None)
        if disk is None:
            return None
        return VisitResult(
            disk=disk, ending=VisitOutcome.REFUSED, seen=DeviceState.RELEASED, why=released_sentence(disk), hint=released_hint(disk), safe=True,
        )  # fmt: skip

    def absent(self, rotation: RotationSet) -> NotNow:
        """Return why no disk of a set can be used now, and which one is requested."""
        own = {disk.name for disk in rotation.disks}
        bad = [f"{each.says}; {each.hint}" for each in self.strangers() if each.disk and each.disk.name in own]
        told = [*bad, *self.kept(rotation)] or [f"no disk of the set {rotation.name} is here"]
        return NotNow("; ".join(dict.fromkeys(told)), hint=self.standing(rotation, waits=True).request)


class DiskInPlace:
    """A disk that a person attached: a command reads from it where it is, holds it meanwhile, and leaves it attached."""

    def __init__(self, found: IdentifiedDevice, disk: Disk, held: ExitStack) -> None:
        self.disk = disk
        self._device, self._held = found.device.name, held

    def run(self, job: Job, run: Callable[[Job], RunReport]) -> RunReport | None:
        """Run one job, placed on the disk."""
        return run(job_on_disk(job, self.disk, self._device))

    def end(self) -> None:
        """Hold the disk no longer."""
        self._held.close()


class DiskVisits:
    """Visits for jobs that run one after the other: a disk stays attached until the last of them has ended.

    `do` runs a job that is placed on a disk, or receives why it is not; `read` and `keep_promise` read copies again before a disk is released.
    """

    def __init__(
        self,
        where: compose.Directories,
        known: Configuration,
        make_visit_context: Callable[[], VisitContext],
        show: Callable[[VisitResult, SetStatus], None],
        *,
        read: BudgetReader | None = None,
        keep_promise: Callable[[Job], BudgetReadResult | None] | None = None,
    ) -> None:
        self._read, self._keep_promise = read, keep_promise
        self._where, self._known, self._make, self._show = where, known, make_visit_context, show
        self._arrivals: PluggedInDisks | None = None
        self._stays: dict[str, AttachedDisk | DiskInPlace | VisitResult | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as each_of_them:  # though one fails
            for name, attached_disk in reversed(self._stays.items()):
                if isinstance(attached_disk, DiskInPlace):
                    each_of_them.callback(attached_disk.end)
                if isinstance(attached_disk, AttachedDisk):
                    each_of_them.callback(self._let_go, self._known.rotation(name), attached_disk)

    def _let_go(self, rotation: RotationSet, attached_disk: AttachedDisk) -> None:
        """Read copies again as far as the set's budget goes, and as jobs promise; end the visit in every case."""
        jobs = jobs_of_set(rotation, self._known.jobs)
        try:
            if self._read is not None and rotation.verify is not None and attached_disk.reports:
                attached_disk.read_again(jobs, rotation.verify, self._read)
            if self._keep_promise is not None and attached_disk.reports:
                attached_disk.read_promised(jobs, self._keep_promise)
        finally:
            self._ended(rotation, attached_disk.end(power_off=rotation.power_off))

    def run(self, job: Job, do: Callable[[Job, NotNow | None], RunReport]) -> RunReport:
        """Run the job on a disk of its set, if it has a set and a disk of it is plugged in."""
        if not job.target.rotates:
            return do(job, None)
        attached_disk, arrivals = self._stay(job)
        if isinstance(attached_disk, VisitResult):
            kind = DiskInUse if attached_disk.seen in (DeviceState.VISITED, DeviceState.LEASED) else NotNow
            return do(job, kind(attached_disk.why, hint=attached_disk.hint))
        report = attached_disk and attached_disk.run(job, lambda placed: do(placed, None))
        return report or do(job, arrivals.absent(self._known.rotation(job.target.name)))

    def is_attached(self, job: Job) -> bool:
        """Return True when a disk of the job's set is attached, or the job needs none."""
        return not job.target.rotates or isinstance(self._stays.get(job.target.name), AttachedDisk | DiskInPlace)

    def can_attach(self, job: Job, *, again: bool = False) -> bool:
        """Return True when a disk of the job's set is plugged in, and was not tried yet. `again`: look for it anew, after a while."""
        if job.target.name in self._stays:
            return False
        arrivals = self._arrivals
        if again and arrivals is not None:
            arrivals.look_again()
        arrivals = self._arrivals = arrivals or PluggedInDisks(self._known, self._make())
        return bool(self._usable(arrivals, self._known.rotation(job.target.name)))

    def _stay(self, job: Job) -> "tuple[AttachedDisk | DiskInPlace | VisitResult | None, PluggedInDisks]":
        rotation = self._known.rotation(job.target.name)
        arrivals = self._arrivals = self._arrivals or PluggedInDisks(self._known, self._make())
        if rotation.name not in self._stays:
            self._stays[rotation.name] = self._begun(arrivals, rotation)
        return self._stays[rotation.name], arrivals

    def attached(self, rotation: RotationSet) -> AttachedDisk | None:
        """Return the disk of the set that is being visited; None: there is none."""
        found = self._stays.get(rotation.name)
        return found if isinstance(found, AttachedDisk) else None

    def _begun(
        self, arrivals: "PluggedInDisks", rotation: RotationSet
    ) -> AttachedDisk | DiskInPlace | VisitResult | None:
        begun: AttachedDisk | VisitResult | None = None
        if arrivals.visit_context.cause is VisitCause.RESTORE and (there := arrivals.in_place(rotation)):
            return there
        automatic = arrivals.visit_context.cause is VisitCause.AUTOMATIC
        usable = self._usable(arrivals, rotation)
        for at, found in enumerate(usable, 1):
            begun = arrivals.begin(found, rotation)
            if isinstance(begun, AttachedDisk):
                for other in filter(None, (each.disk for each in usable[at:])):
                    arrivals.visit_context.say(
                        f"disk {other.called} is here too, and is left as it is: poolferry disks scan uses both"
                    )
                return begun
            self._ended(rotation, begun)
        return begun or (arrivals.released(rotation) if automatic else None)

    def _usable(self, arrivals: "PluggedInDisks", rotation: RotationSet) -> tuple[IdentifiedDevice, ...]:
        """Return the plugged-in disks of a set, the requested one first; where there is none, one that was switched off is woken."""
        usable = arrivals.usable(rotation)
        automatic = arrivals.visit_context.cause is VisitCause.AUTOMATIC
        if not usable and (rotation.use_again or not automatic) and arrivals.wake([rotation]):
            arrivals.look_again()
            usable = arrivals.usable(rotation)
        return usable

    def _ended(self, rotation: RotationSet, ended: VisitResult) -> None:
        if self._arrivals is not None:
            used = self._arrivals.visit_context
            call_safe_hooks(self._where, self._known, ended, used.history, used.say)
            self._show(ended, self._arrivals.standing(rotation))


def call_safe_hooks(
    where: compose.Directories, known: Configuration, ended: VisitResult, history: "History", say: Say
) -> None:
    """Call the jobs' hooks for `disk-safe` after a visit, once the disk may be pulled out."""
    named = [report for report in ended.reports if known.job(report.job).hooks.of("disk-safe")] if ended.safe else []
    if not named:
        return
    from orchestrator.domain.events import RunEvent, RunMessage
    from orchestrator.process.stop import StopRequest
    from orchestrator.runner.hooks import call_hooks
    from orchestrator.runner.run_recorder import RunRecorder

    def notify(event: RunEvent) -> None:
        if isinstance(event, RunMessage) and event.level == "warning":
            say(event.text)

    for report in named:
        job = job_on_disk(known.job(report.job), ended.disk)
        tools = compose.make_run_context(
            job, where, history, notify=notify, log=lambda _: None, stop=StopRequest(), ssh_options=()
        )
        journal = RunRecorder(tools=tools, job=job, run=report.run, begun=compose.monotonic())
        call_hooks("disk-safe", journal, replace(report, why=f"disk {ended.disk.name} may be unplugged"))

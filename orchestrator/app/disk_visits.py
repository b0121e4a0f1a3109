"""Visits of removable disks, for the commands that make them: the present disks, their order, the messages."""

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Self

from orchestrator import compose
from orchestrator.app.hotplug import plugged_in
from orchestrator.app.settings import WrongRequest
from orchestrator.config.models import Configuration
from orchestrator.disks.power import wake
from orchestrator.domain.errors import NotNow
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import Disk, RotationSet
from orchestrator.domain.run import RunReport
from orchestrator.planners.identify_disk import Recognised, State, Visited
from orchestrator.planners.rotation import arrived, ask, judge_set, left_alone, request
from orchestrator.process.executor import Writer
from orchestrator.runner.disk.state import members, of_set, on_disk
from orchestrator.runner.disk.visit import Dock, Read, Stay, begin_visit, look
from orchestrator.views.visits import SetStanding

if TYPE_CHECKING:
    from orchestrator.history.store import History
    from orchestrator.history.views import Views

_MACHINE = "/etc/machine-id"
Say = Callable[[str], None]


def owner() -> str:
    """Return this machine's key for markers: it survives a renaming of the machine, and hides the machine's own id.

    Source: machine-id(5): the id is confidential, and is to be hashed for applications.
    """
    try:
        with open(_MACHINE, encoding="ascii") as file:
            told = file.read().strip()
    except (OSError, ValueError):
        told = ""
    return sha256(f"poolferry:{told or os.uname().nodename}".encode()).hexdigest()[:32]


def dock(where: compose.Directories, history: "History", *, say: Say, log: Say) -> Dock:
    """Build the context that visits need."""
    os.makedirs(os.path.join(where.state, "notes"), mode=0o700, exist_ok=True)
    return Dock(
        history=history, writer=Writer(log=log), clock=compose.now, owner=owner(), host=os.uname().nodename, state=where.state, say=say,
    )  # fmt: skip


def set_standing(
    rotation: RotationSet, jobs: Iterable[Job], views: "Views", *, now: datetime, here: Iterable[str] | None = None
) -> SetStanding:
    """Return the state of a set at `now`. `here`: names of plugged-in disks; by default from udev's links."""
    local, here = now.astimezone(), plugged_in(rotation) if here is None else tuple(here)
    own = members(rotation, of_set(rotation, jobs), views, here)
    asked, health = ask(rotation, own, local), judge_set(rotation, own, local)
    return SetStanding(
        rotation=rotation, asked=asked, health=health, request=request(rotation, asked, health, local, here)
    )


def find_disk(known: Configuration, name: str) -> tuple[RotationSet, Disk]:
    """Return the set of the disk of that name, and the disk. Raises: WrongRequest."""
    found = [(each, disk) for each in known.sets for disk in each.disks if disk.name == name]
    if not found:
        names = ", ".join(disk.name for each in known.sets for disk in each.disks)
        raise WrongRequest(f"there is no disk {name}; " + (f"one of {names}" if names else "none is enrolled"))
    return found[0]


class Arrivals:
    """The disks that are plugged in just now, by set."""

    def __init__(self, known: Configuration, used: Dock, *, awake: bool = False) -> None:
        """Survey the disks. `awake`: disks that were switched off and are still plugged in are woken first."""
        self.known = known
        self.dock = used
        if awake:
            self.wake(known.sets)
        self.found = look(known.sets, used)

    def wake(self, sets: Iterable[RotationSet]) -> bool:
        """Wake the switched-off disks of the sets; return True when there was one."""
        woken = wake([disk for rotation in sets for disk in rotation.disks], self.dock.writer)
        for disk in woken:
            self.dock.say(f"disk {disk.called} was switched off and is still plugged in: it is used again")
        return bool(woken)

    def look_again(self) -> None:
        """Survey the disks again, as they may have changed."""
        self.found = look(self.known.sets, self.dock)

    def strangers(self) -> tuple[Recognised, ...]:
        """Return the devices that were plugged in and cannot be used."""
        return tuple(each for each in self.found if each.state is not State.TO_PROVE)

    def usable(self, rotation: RotationSet) -> tuple[Recognised, ...]:
        """Return the disks of a set that are here, the requested one first."""
        stands = self.standing(rotation)
        turn = [disk.name for disk in (stands.asked.disk, *stands.asked.others) if disk]
        here = [each for each in self.found if each.state is State.TO_PROVE and each.disk and each.disk.name in turn]
        return tuple(sorted(here, key=lambda each: turn.index(each.disk.name) if each.disk else 0))

    def standing(self, rotation: RotationSet) -> SetStanding:
        """Return the state of the set with the disks that are here."""
        here = self._here()
        views = self.dock.history.views
        return set_standing(rotation, self.known.jobs, views, now=compose.now(), here=here)

    def _here(self) -> tuple[str, ...]:
        return tuple(each.disk.name for each in self.found if each.disk and each.state is not State.HELD)

    def kept(self, rotation: RotationSet) -> tuple[str, ...]:
        """Return why disks of the set that are here take no copy now."""
        now = compose.now().astimezone()
        own = members(rotation, of_set(rotation, self.known.jobs), self.dock.history.views)
        here = self._here()
        return tuple(told for member in own if member.disk.name in here and (told := left_alone(rotation, member, now)))

    def begin(self, found: Recognised, rotation: RotationSet) -> Stay | Visited:
        """Begin a visit and report it."""
        say, disk = self.dock.say, found.disk
        if disk is None:
            raise ValueError(found.state)
        stands = self.standing(rotation)
        begun = begin_visit(found, self.dock)
        if isinstance(begun, Stay):
            say(f"{arrived(disk, stands.asked)} ({found.device.path}); do not unplug it until it is said to be safe")
        for told in filter(None, (stands.health.all_here, *self.kept(rotation))):
            say(f"warning: {told}")
        return begun

    def absent(self, rotation: RotationSet) -> NotNow:
        """Return why no disk of a set can be used now, and which one is requested."""
        own = {disk.name for disk in rotation.disks}
        bad = [f"{each.says}; {each.cure}" for each in self.strangers() if each.disk and each.disk.name in own]
        told = [*bad, *self.kept(rotation)] or [f"no disk of the set {rotation.name} is here"]
        return NotNow("; ".join(told), cure=self.standing(rotation).request)


class Visits:
    """Visits for jobs that run one after the other: a disk stays attached until the last of them has ended.

    `do` runs a job that is placed, or is told why it is not; `read` reads copies again before a disk is let go.
    """

    def __init__(
        self,
        where: compose.Directories,
        known: Configuration,
        make_dock: Callable[[], Dock],
        show: Callable[[Visited, SetStanding], None],
        *,
        read: Read | None = None,
    ) -> None:
        self._read = read
        self._where, self._known, self._make, self._show = where, known, make_dock, show
        self._arrivals: Arrivals | None = None
        self._stays: dict[str, Stay | Visited | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name, stay in self._stays.items():
            if isinstance(stay, Stay):
                rotation = self._known.rotation(name)
                if self._read is not None and rotation.verify is not None and stay.reports:
                    stay.read_again(of_set(rotation, self._known.jobs), rotation.verify, self._read)
                self._ended(rotation, stay.end(power_off=rotation.power_off))

    def run(self, job: Job, do: Callable[[Job, NotNow | None], RunReport]) -> RunReport:
        """Run the job on a disk of its set, if it has a set, and a disk of that set is here."""
        if not job.target.rotates:
            return do(job, None)
        rotation = self._known.rotation(job.target.name)
        if self._arrivals is None:
            self._arrivals = Arrivals(self._known, self._make())
        if rotation.name not in self._stays:
            self._stays[rotation.name] = self._begun(self._arrivals, rotation)
        stay = self._stays[rotation.name]
        if isinstance(stay, Visited):
            return do(job, NotNow(stay.why, cure=stay.cure))
        report = stay and stay.run(job, lambda placed: do(placed, None))
        return report or do(job, self._arrivals.absent(rotation))

    def _begun(self, arrivals: "Arrivals", rotation: RotationSet) -> Stay | Visited | None:
        begun: Stay | Visited | None = None
        usable = arrivals.usable(rotation)
        if not usable and arrivals.wake([rotation]):
            arrivals.look_again()
            usable = arrivals.usable(rotation)
        for at, found in enumerate(usable, 1):
            begun = arrivals.begin(found, rotation)
            if isinstance(begun, Stay):
                for other in filter(None, (each.disk for each in usable[at:])):
                    arrivals.dock.say(
                        f"disk {other.called} is here too, and is left as it is: poolferry disks scan uses both"
                    )
                return begun
            self._ended(rotation, begun)
        return begun

    def _ended(self, rotation: RotationSet, ended: Visited) -> None:
        if self._arrivals is not None:
            used = self._arrivals.dock
            call_safe_hooks(self._where, self._known, ended, used.history, used.say)
            self._show(ended, self._arrivals.standing(rotation))


def call_safe_hooks(
    where: compose.Directories, known: Configuration, ended: Visited, history: "History", say: Say
) -> None:
    """Call the jobs' hooks for `disk-safe` after a visit, once the disk may be pulled out."""
    named = [report for report in ended.reports if known.job(report.job).hooks.of("disk-safe")] if ended.safe else []
    if not named:
        return
    from orchestrator.domain.events import Event, Said
    from orchestrator.process.stop import Stop
    from orchestrator.runner.hooks import call_hooks
    from orchestrator.runner.run_recorder import Journal

    def tell(event: Event) -> None:
        if isinstance(event, Said) and event.level == "warning":
            say(event.text)

    for report in named:
        job = on_disk(known.job(report.job), ended.disk)
        tools = compose.make_tools(job, where, history, tell=tell, log=lambda _: None, stop=Stop(), ssh_options=())
        journal = Journal(tools=tools, job=job, run=report.run, begun=compose.monotonic())
        call_hooks("disk-safe", journal, replace(report, why=f"disk {ended.disk.name} may be unplugged"))

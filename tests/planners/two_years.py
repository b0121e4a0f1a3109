"""A model of a machine over years: a clock that looks now and then, runs that take their time, and what goes wrong.

Deterministic for a seed.
"""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from orchestrator.domain.due import Downtime, DowntimeCause, DueRun, JobHistory, PastRun, ScheduleAnchor
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.run import Outcome
from orchestrator.planners.due import DueFacts, decide_due
from orchestrator.planners.queue import RunQueue, decide_queue
from orchestrator.schedule.triggers import ZonedCalendar

BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
END = BEGIN + timedelta(days=731)
NONE = timedelta()


def job(name: str, schedule: str | None, *, place: str = "", after: tuple[str, ...] = ()) -> Job:
    """A job as far as the clock cares."""
    there = Location(path=f"/backup/{name}")
    return Job(
        name=name, file="", engine="rsync", source=Location(path=f"/srv/{name}"), schedule=schedule, after=after, options=None,
        target=Place(name=place or name, location=there),
    )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Going:
    """A run that goes on. `ends` in true time."""

    run: PastRun
    ends: datetime
    outcome: Outcome


@dataclass(slots=True, kw_only=True)
class Machine:
    """The machine. `true` is the time that nobody sets; its clock shows `true + off`."""

    jobs: tuple[Job, ...]
    zone: ZoneInfo
    chance: Random
    steps: bool
    end: datetime = END
    true: datetime = BEGIN
    off: timedelta = NONE
    anchors: dict[str, ScheduleAnchor] = field(default_factory=dict)
    due: dict[str, DueRun] = field(default_factory=dict)
    past: dict[str, JobHistory] = field(default_factory=dict)
    runs: dict[str, list[PastRun]] = field(default_factory=dict)
    going: dict[str, Going] = field(default_factory=dict)
    absences: list[Downtime] = field(default_factory=list)
    concluded: list[tuple[DueRun, str]] = field(default_factory=list)
    by_hand: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    begun: list[tuple[DueRun, PastRun]] = field(default_factory=list)
    numbers: int = 0
    highest: datetime = BEGIN

    @property
    def wall(self) -> datetime:
        """Return what the clock shows."""
        return self.true + self.off

    def live(self) -> None:
        """From the beginning to the end."""
        calendar = ZonedCalendar(self.zone)
        while self.true < self.end:
            self._happens()
            self._ends()
            self._look(calendar)
            self.highest = max(self.highest, self.wall)
            self.true += timedelta(seconds=self.chance.uniform(30, 3600))

    def _happens(self) -> None:
        draw = self.chance.random()
        if draw < 0.002:
            self._away(DowntimeCause.OFF, timedelta(hours=self.chance.expovariate(1 / 20)))
        elif draw < 0.006:
            self._away(DowntimeCause.SLEPT, timedelta(hours=self.chance.expovariate(1 / 8)))
        elif draw < 0.008:
            self._away(DowntimeCause.STOPPED, timedelta(minutes=self.chance.expovariate(1 / 90)))
        elif draw < 0.010 and self.steps:
            self._set(timedelta(minutes=self.chance.uniform(-170, 170)))
        elif draw < 0.016:
            self._run_by_hand(self.chance.choice(self.jobs))

    def _away(self, away: DowntimeCause, long: timedelta) -> None:
        """A run that is cut by the end of the machine or of the daemon ends interrupted; a machine that sleeps goes on later."""
        begun = self.wall
        for name in list(self.going):
            if away is DowntimeCause.SLEPT:
                self.going[name].ends += long
            else:
                self._end(name, Outcome.INTERRUPTED)
        self.true += long
        self.absences = [*self.absences[-9:], Downtime(away=away, begun=begun, ended=self.wall)]

    def _set(self, by: timedelta) -> None:
        """Somebody sets the clock; it stays within three hours of the truth."""
        if abs(self.off + by) < timedelta(hours=2, minutes=55):
            if by > NONE:
                self.absences = [
                    *self.absences[-9:],
                    Downtime(away=DowntimeCause.SET, begun=self.wall, ended=self.wall + by),
                ]
            self.off += by

    def _run_by_hand(self, one: Job) -> None:
        if one.name not in self.going:
            self._begin(one, "by hand", Outcome.FAILED if self.chance.random() < 0.3 else Outcome.DONE)

    def _begin(self, one: Job, why: str, outcome: Outcome) -> PastRun:
        self.numbers += 1
        run = PastRun(id=self.numbers, begun=self.wall, begun_why=why, ended=None, outcome=None, why="")
        self.runs.setdefault(one.name, []).append(run)
        takes = timedelta(minutes=self.chance.expovariate(1 / 25))
        self.going[one.name] = Going(run=run, ends=self.true + takes, outcome=outcome)
        self._remember(one.name)
        return run

    def _ends(self) -> None:
        for name, going in list(self.going.items()):
            if going.ends <= self.true:
                self._end(name, going.outcome)

    def _end(self, name: str, outcome: Outcome) -> None:
        run = self.going.pop(name).run
        self.runs[name][-1] = replace(run, ended=self.wall, outcome=outcome, why="as it came")
        self._remember(name)

    def _remember(self, name: str) -> None:
        runs, before = self.runs[name], self.past.get(name, JobHistory())
        last = runs[-1]
        self.past[name] = JobHistory(
            last=last,
            last_ended=last if last.outcome else before.last_ended,
            last_well=last if last.well else before.last_well,
        )

    def _known(self) -> dict[str, JobHistory]:
        found = dict(self.past)
        for name, due_run in self.due.items():
            since = tuple(run for run in self.runs.get(name, [])[-20:] if run.id > due_run.after_run)
            if since:
                found[name] = replace(found[name], since=since)
        return found

    def _look(self, calendar: ZonedCalendar) -> None:
        past = self._known()
        facts = DueFacts(anchors=self.anchors, due=self.due, past=past, absences=tuple(self.absences))
        due = decide_due(self.jobs, facts, self.wall, calendar)
        rows = {due_run.job for due_run in due.due}
        for anchor in due.anchors:
            before = self.anchors.get(anchor.job)
            if before and before.at < anchor.at and anchor.job not in rows and anchor.at != self.wall:
                self.by_hand.append((anchor.job, before.at, anchor.at))
            self.anchors[anchor.job] = anchor
        for over in due.over:
            self.concluded.append((self.due.pop(over.job), over.why))
        for due_run in due.due:
            before_row = self.due.get(due_run.job)
            if (
                before_row and due_run.scheduled_at > before_row.newest
            ):  # the run that goes on was for what was owed until now
                self.concluded.append((before_row, "its run goes on"))
            self.due[due_run.job] = due_run
        self._turn(calendar, past)

    def _turn(self, calendar: ZonedCalendar, past: dict[str, JobHistory]) -> None:
        jobs = {one.name: one for one in self.jobs}
        running = {name: jobs[name].target.name for name in self.going}
        queue = RunQueue(jobs=jobs, due=tuple(self.due.values()), running=running, paused={}, past=past, parallel=3)
        for due_run in decide_queue(queue, self.wall, calendar).begin:
            outcome = Outcome.WAITING if self.chance.random() < 0.1 else Outcome.DONE
            self.begun.append((due_run, self._begin(jobs[due_run.job], due_run.why, outcome)))

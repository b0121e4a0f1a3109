"""plan and run.

Changes things.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from orchestrator import compose
from orchestrator.interfaces import door
from orchestrator.interfaces.cli.frame import Command, Frame, complete_job, pass_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from orchestrator.config.models import Configuration
    from orchestrator.domain.errors import NotNow
    from orchestrator.domain.job import Job
    from orchestrator.domain.run import RunReport
    from orchestrator.domain.units import Bytes
    from orchestrator.history.store import History
    from orchestrator.interfaces.progress import Progress
    from orchestrator.interfaces.visits import Visits
    from orchestrator.process.stop import Stop
    from orchestrator.runner.drilling import DrillEnd
    from orchestrator.runner.planning import Planned
    from orchestrator.runner.tools import Tools
    from orchestrator.runner.visiting import Read, Reread

P = ParamSpec("P")
T = TypeVar("T")
_WORST = (1, 3, 75, 0)

allow_option = click.option(
    "--allow", multiple=True, metavar="GUARD", help="let this guard pass once; a refusal names it (repeatable)"
)

aside_option = click.option(
    "--aside", is_flag=True, help="datasets of the target that do not fit get another name, and are sent anew"
)


def _allowed(allow: Sequence[str], *, aside: bool) -> frozenset[str]:
    """What may pass once."""
    return frozenset((*allow, "aside") if aside else allow)


@click.command(cls=Command, short_help="Look and decide; change nothing.")
@click.argument("job", shell_complete=complete_job)
@allow_option
@aside_option
@pass_frame
def plan(frame: Frame, job: str, allow: Sequence[str], aside: bool) -> int:
    """Look and decide: every command, why, and what would be destroyed. Changes nothing."""
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.run import EXIT
    from orchestrator.interfaces.signals import heard_by
    from orchestrator.interfaces.wording import decision_lines
    from orchestrator.runner.telling import decision_value, step_commands

    known = frame.configuration()
    declared = known.job(job)
    if declared.target.rotates:
        return _plan_without_a_disk(frame, known, declared)
    stop = compose.stop_for(None)
    with heard_by(stop):
        planned = _look(frame, declared, stop, _allowed(allow, aside=aside))
    decision, keeping = planned.decision, [(each.point.name, each.reason) for each in planned.going]
    refused = isinstance(decision, Refusal)
    steps = () if isinstance(decision, Refusal) else [step for stage in decision.stages for step in stage]
    lines = decision_lines(job, decision, [step_commands(step) for step in steps])
    if not refused:
        lines += [f"  then [keep] removes {name}: {reason}" for name, reason in keeping]
    value = {"job": job, **decision_value(decision), "removes": [{"point": n, "reason": r} for n, r in keeping]}
    frame.answer(value, lines)
    return EXIT[decision.outcome] if isinstance(decision, Refusal) else 0


def _plan_without_a_disk(frame: Frame, known: "Configuration", job: "Job") -> int:
    """Which disk a job would go to, and what each would get. Why no more: to look at a disk it must be mounted."""
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.run import EXIT, Outcome
    from orchestrator.interfaces.forecasts import forecast_of
    from orchestrator.interfaces.visits import set_standing
    from orchestrator.interfaces.wording import decision_lines
    from orchestrator.runner.telling import decision_value

    rotation = known.rotation(job.target.name)
    with frame.views() as views:
        stands = set_standing(rotation, known.jobs, views, now=compose.now())
        told = {disk.name: forecast_of(disk, (job,), views, frame.log) for disk in rotation.disks}
    why = f"it is decided on the disk of the set {rotation.name} that is plugged in when the job runs"
    refusal = Refusal(why=why, evidence=(), cure=stands.request, outcome=Outcome.WAITING)
    lines = [*decision_lines(job.name, refusal, []), *(f"  on disk {name}: {text}" for name, text in told.items())]
    value = {"job": job.name, **decision_value(refusal), "removes": []}
    frame.answer({**value, "forecast": [{"disk": name, "forecast": text} for name, text in told.items()]}, lines)
    return EXIT[refusal.outcome]


def _look(frame: Frame, job: "Job", stop: "Stop", allowed: frozenset[str]) -> "Planned":
    """The decision, and what [keep] would remove then. It makes no history where there is none."""
    from orchestrator.engines.shelf import engine
    from orchestrator.runner.planning import Known, plan_job

    with frame.views() as views:
        sound = tuple(point.name for point in views.points(job.name) if point.sound)
        known = Known(facts=views.memory(job.name), sound=sound)
    where = frame.where.state
    with compose.reader(job, stop, frame.log) as reader:
        return plan_job(
            job, engine(job.engine), reader, known, state=where, now=compose.now(), allowed=allowed,
            snapshotter=compose.snapshotter(job),
        )  # fmt: skip


@click.command(cls=Command)
@click.argument("job", nargs=-1, shell_complete=complete_job)
@allow_option
@aside_option
@click.option(
    "--owed", is_flag=True, help="only what is owed now by the jobs' own schedules; for a timer, without the daemon"
)
@click.option("--why", default=None, hidden=True, metavar="TEXT", help="what the run is recorded to be for")
@pass_frame
def run(frame: Frame, job: Sequence[str], allow: Sequence[str], aside: bool, owed: bool, why: str | None) -> int:
    """Run jobs, one after the other: copy, prove, record."""
    from orchestrator.domain.run import EXIT, Outcome
    from orchestrator.interfaces.around import Around
    from orchestrator.runner.telling import report_value

    if not job and not owed:
        raise click.UsageError("Missing argument 'JOB...'.")
    known = frame.configuration()
    declared = tuple(known.job(name) for name in dict.fromkeys(job))
    around = Around(frame.where, known.jobs, door.say)
    reports, values, codes = list["RunReport"](), list[dict[str, Any]](), list[int]()
    with (
        opened(frame) as desk,
        visits_of(frame, desk, known, read_again=True) as visits,
        _asked(frame, desk, known, declared, why=None if owed else why or asked_by()) as asked,
    ):
        for one, reason in asked:
            begun = around.begins(one)
            drills: list[DrillEnd] = []
            reports.append(_run(desk, visits, one, reason, _allowed(allow, aside=aside), drills))
            for each in (reports[-1], *(end.report for end in drills)):
                if not frame.json and not (frame.quiet and EXIT[each.outcome] in (0, 75)):
                    tell(each)
            if not one.copies and not frame.json and reports[-1].outcome is Outcome.FAILED:
                _heal_pool(known, one, reports[-1])
            codes += [EXIT[end.report.outcome] for end in drills]
            values.append(_with_drill(report_value(reports[-1]), drills))
            around.ended(one, reports[-1], begun)
            if desk.stopped:
                break
    not_begun = [] if owed else [one.name for one in declared[len(reports) :]]
    if not_begun:
        door.say(f"not begun: {', '.join(not_begun)}")
    if frame.json:
        door.answer_value(_value(values, several=owed or len(declared) > 1))
    return worst([*codes, *(EXIT[report.outcome] for report in reports)])


def _asked(
    frame: Frame, desk: "Desk", known: "Configuration", declared: "Sequence[Job]", *, why: str | None
) -> "AbstractContextManager[Iterable[tuple[Job, str]]]":
    """The jobs to run, each with why. `why` None: those that owe a run, of these jobs or of all."""
    from contextlib import nullcontext

    if why is not None:
        return nullcontext([(one, why) for one in declared])
    from orchestrator.interfaces.daemon.by_timer import owed_runs

    parallel, names = compose.machine(frame.where).clock.parallel, [one.name for one in declared]
    return owed_runs(frame.where, known.jobs, names, desk.history, parallel=parallel)


def visits_of(
    frame: Frame, desk: "Desk", known: "Configuration", *, read_again: bool = False
) -> "AbstractContextManager[Visits | None]":
    """Visits of removable disks, where there are any: those attached are let go at the end.

    `read_again`: before that, copies are read again as far as their set's budget goes.
    """
    if not known.sets:
        from contextlib import nullcontext

        return nullcontext()
    from orchestrator.interfaces.visits import Visits, dock, show_visited

    return Visits(
        frame.where, known, lambda: dock(frame.where, desk.history, say=door.say, log=frame.log), show_visited,
        read=reader(frame, desk) if read_again else None,
    )  # fmt: skip


def reader(frame: Frame, desk: "Desk") -> "Read":
    """Reads copies again, within a budget, and tells of it."""

    def read(job: "Job", /, *, budget: "Bytes") -> "Reread":
        from orchestrator.runner.rereading import reread_job

        done = desk.do(job, reread_job, budget=budget)
        if not frame.json and not frame.quiet:
            tell(done.report)
        return done

    return read


def _run(
    desk: "Desk", visits: "Visits | None", job: "Job", why: str, allowed: frozenset[str], drills: "list[DrillEnd]"
) -> "RunReport":
    """One run, and the drill that is due after it, while the disk is here."""
    from orchestrator.runner.run import run_job

    def do(placed: "Job", absent: "NotNow | None") -> "RunReport":
        report = desk.do(placed, run_job, why=why, allowed=allowed, absent=absent)
        if placed.drill.asked and report.outcome.well and not desk.stopped:
            from orchestrator.runner.drilling import drill_when_due

            drills.extend(filter(None, [desk.do(placed, drill_when_due)]))
        return report

    return visits.run(job, do) if visits else do(job, None)


def _with_drill(value: dict[str, Any], drills: "list[DrillEnd]") -> dict[str, Any]:
    """A run's value with that of the drill after it, where there was one."""
    if not drills:
        return value
    from orchestrator.interfaces.cli.drilling import drill_value

    return {**value, "drill": drill_value(drills[-1])}


def _heal_pool(known: "Configuration", job: "Job", report: "RunReport") -> None:
    """Which jobs have what a pool lost."""
    from orchestrator.planners.healing import heal_pool

    door.answer([f"  to heal {line}" for line in heal_pool(report.evidence, known.jobs, job.source)])


def tell(report: "RunReport") -> None:
    """How a run ended, for people."""
    from orchestrator.interfaces.wording import report_lines

    door.answer(report_lines(report))


def _value(reports: list[dict[str, Any]], *, several: bool) -> dict[str, Any]:
    return {"runs": reports} if several else reports[0]


def worst(codes: Sequence[int]) -> int:
    """The exit code of several runs: failed over refused over waiting over fine."""
    return next(code for code in _WORST if code in (*codes, 0))


def asked_by() -> str:
    """Why a run began, for history."""
    return "by hand" if sys.stdin is not None and sys.stdin.isatty() else "by a command"


class Desk:
    """Open history, progress and signals, for the commands that do something."""

    def __init__(self, frame: Frame, history: "History", shown: "Progress") -> None:
        self.history = history
        self._frame = frame
        self._shown = shown
        self.stopped = False

    def do(
        self, job: "Job", deed: "Callable[Concatenate[Job, Tools, P], T]", *arguments: P.args, **more: P.kwargs
    ) -> T:
        """Calls `deed` with the job and its tools, while signals ask it to stop.

        Raises: NotNow for a job that is placed on no disk of its set, but for a run, which says so itself.
        """
        if job.target.rotates and "absent" not in more:
            raise compose.unplaced(job)
        from orchestrator.interfaces.signals import heard_by

        stop = compose.stop_for(job)
        with heard_by(stop) as heard, self._shown, compose.connections(job) as ssh_options:
            tools = compose.make_tools(
                job, self._frame.where, self.history, tell=self._shown.tell, log=self._shown.log, stop=stop,
                ssh_options=ssh_options, watched=self._shown.watched,
            )  # fmt: skip
            done = deed(job, tools, *arguments, **more)
        self.stopped = bool(heard)
        return done


class opened:  # noqa: N801 - used as a word: `with opened(frame) as desk`
    """A desk as long as it is needed."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __enter__(self) -> Desk:
        from orchestrator.interfaces.progress import progress

        frame = self._frame
        self._history = compose.open_history(frame.where)
        shown = progress(quiet=frame.quiet, verbose=frame.verbose, monotonic=compose.monotonic)
        return Desk(frame, self._history, shown)

    def __exit__(self, *_: object) -> None:
        self._history.close()


COMMANDS: tuple[click.Command, ...] = (plan, run)

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
    from collections.abc import Callable

    from orchestrator.domain.job import Job
    from orchestrator.domain.run import RunReport
    from orchestrator.history.store import History
    from orchestrator.interfaces.progress import Progress
    from orchestrator.process.stop import Stop
    from orchestrator.runner.planning import Planned
    from orchestrator.runner.tools import Tools

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
    from orchestrator.interfaces.signals import heard_by
    from orchestrator.interfaces.wording import decision_lines
    from orchestrator.runner.telling import decision_value, step_commands

    declared = frame.configuration().job(job)
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
    return 3 if refused else 0


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
@click.argument("job", nargs=-1, required=True, shell_complete=complete_job)
@allow_option
@aside_option
@click.option("--why", default=None, hidden=True, metavar="TEXT", help="what the run is recorded to be for")
@pass_frame
def run(frame: Frame, job: Sequence[str], allow: Sequence[str], aside: bool, why: str | None) -> int:
    """Run jobs, one after the other: copy, prove, record."""
    from orchestrator.domain.run import EXIT
    from orchestrator.runner.run import run_job
    from orchestrator.runner.telling import report_value

    declared = frame.jobs(job)
    reports: list[RunReport] = []
    with opened(frame) as desk:
        for one in declared:
            reports.append(desk.do(one, run_job, why=why or asked_by(), allowed=_allowed(allow, aside=aside)))
            if not frame.json and not (frame.quiet and EXIT[reports[-1].outcome] in (0, 75)):
                _tell(reports[-1])
            if desk.stopped:
                break
    not_begun = [one.name for one in declared[len(reports) :]]
    if not_begun:
        door.say(f"not begun: {', '.join(not_begun)}")
    if frame.json:
        door.answer_value(_value([report_value(report) for report in reports], several=len(declared) > 1))
    return worst([EXIT[report.outcome] for report in reports])


def _tell(report: "RunReport") -> None:
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
        self._frame = frame
        self._history = history
        self._shown = shown
        self.stopped = False

    def do(
        self, job: "Job", deed: "Callable[Concatenate[Job, Tools, P], T]", *arguments: P.args, **more: P.kwargs
    ) -> T:
        """Calls `deed` with the job and its tools, while signals ask it to stop."""
        from orchestrator.interfaces.signals import heard_by

        stop = compose.stop_for(job)
        with heard_by(stop) as heard, self._shown, compose.connections(job) as ssh_options:
            tools = compose.make_tools(
                job, self._frame.where, self._history, tell=self._shown.tell, log=self._shown.log, stop=stop,
                ssh_options=ssh_options,
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

"""`restore pool`: a pool is destroyed and made anew, in steps; the same call goes on at the right one."""

from collections.abc import Callable, Sequence

from orchestrator import compose
from orchestrator.app import pool_evacuation as evacuating
from orchestrator.app import pool_rebuild as rebuilding
from orchestrator.app.attached_disks import Stays
from orchestrator.app.next_base import links
from orchestrator.app.pool_evacuation import Here
from orchestrator.app.session import Desk, opened
from orchestrator.app.settings import Frame, WrongRequest
from orchestrator.app.subscriber import unheard
from orchestrator.domain.evacuation import KitFacts, Standing
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.planners.evacuation import refuse_guests, refuse_leaving
from orchestrator.runner.restore.request import Wish
from orchestrator.runner.restore.restore import run_restore
from orchestrator.views.pool_rebuild import Part, RebuildEnd, RebuildStep, leaving_lines, part_told
from orchestrator.views.restore import Link, link_lines


def rebuild_pool(
    frame: Frame,
    name: str,
    *,
    plan: bool = False,
    lose: Sequence[str] = (),
    trust: Sequence[str] = (),
    content: bool = False,
    hears: Callable[[RebuildStep], None] = unheard,
) -> RebuildEnd:
    """Go on with the pool as far as can be gone now. `plan`: only look. `lose`, `trust`: datasets, and disks that are away.

    `hears`: is told of each step. Raises: WrongRequest, OrchestratorError.
    """
    known = {disk.name for rotation in frame.configuration().sets for disk in rotation.disks}
    if strange := [disk for disk in trust if disk not in known]:
        raise WrongRequest(f"--trust {strange[0]}: targets.toml declares no disk of that name")
    if plan:
        with Stays(frame, None) as stays:
            return _Rebuild(frame, None, stays, name, lose, trust, content=content, hears=hears).end()
    with opened(frame) as desk, Stays(frame, desk) as stays:
        return _Rebuild(frame, desk, stays, name, lose, trust, content=content, hears=hears).end()


class _Rebuild:
    """One call. Without a desk nothing is changed."""

    def __init__(
        self, frame: Frame, desk: Desk | None, stays: Stays, name: str, lose: Sequence[str], trust: Sequence[str], *,
        content: bool, hears: Callable[[RebuildStep], None],
    ) -> None:  # fmt: skip
        self._frame, self._desk, self._stays, self._name = frame, desk, stays, name
        self._lose, self._trust, self._content = tuple(lose), tuple(trust), content
        self._since, self._hears = compose.now(), hears
        self._steps: list[RebuildStep] = []
        self._datasets: tuple[Standing, ...] | None = None
        self._next: tuple[str, ...] | None = None
        self._found: tuple[Part, ...] | None = None
        self._differences: tuple[str, ...] | None = None
        self._links: tuple[Link, ...] | None = None
        self._anew: tuple[str, ...] | None = None

    def end(self) -> RebuildEnd:
        """Goes on as far as it can."""
        outcome = self._go_on()
        return RebuildEnd(
            pool=self._name, outcome=outcome, steps=tuple(self._steps), datasets=self._datasets, next=self._next,
            parts=self._found, differences=self._differences, links=self._links, anew=self._anew,
        )  # fmt: skip

    def _step(self, number: int, title: str, state: str, lines: Sequence[str] = ()) -> None:
        self._steps.append(RebuildStep(number=number, title=title, state=state, lines=tuple(lines)))
        self._hears(self._steps[-1])

    def _go_on(self) -> Outcome:
        with self._frame.views() as views:
            known = views.rebuilds.of(self._name)
            files = rebuilding.files_of(known.kits) if known else ()
            self._since = known.begun_at if known else compose.now()
            here = evacuating.look(self._frame, self._name, views, self._stays, files)
            kits = dict(known.kits) if known else rebuilding.remembered(here, views)
        told = rebuilding.facts(self._name, kits)
        self._lose = tuple(dict.fromkeys((*self._lose, *(known.lost if known else ()))))
        if here.pool.guid is not None and not rebuilding.is_anew(here, known, told):
            return self._old(here)
        if not told:
            self._step(1, "is all of it elsewhere", "nobody knows", ["no kit tells how the pool was made"])
            return Outcome.REFUSED
        if self._desk is not None and known is None:
            tops = {one.top_guid for one in told.values()} - {None}
            self._desk.history.rebuilds.keep(
                self._name, top_guid=min(filter(None, tops), default=None), lost=self._lose, kits=kits, now=compose.now()
            )  # fmt: skip
        self._step(1, "is all of it elsewhere", "it is gone already, and came to be known from its kits")
        if here.pool.guid is None:
            return self._to_make(rebuilding.lines_to_make(self._name, told, there=False))
        return self._bring_back(here, kits, told)

    # Before it goes.

    def _old(self, here: Here) -> Outcome:
        leaving = evacuating.judged(here, self._lose, self._trust)
        self._datasets = tuple(leaving.standings)
        own = evacuating.own_place(self._frame, here.pool)
        lost, guests = refuse_leaving(here.pool, leaving), refuse_guests(here.pool)
        if refusals := [each for each in (lost, guests, own) if each is not None]:
            lines = leaving_lines(leaving)
            for each in refusals:  # what is lost stands in the lines of the datasets
                lines += [each.why, *(() if each is lost else each.evidence), f"what to do: {each.cure}"]
            self._step(1, "is all of it elsewhere", "no", lines)
            return Outcome.REFUSED
        self._step(1, "is all of it elsewhere", "yes", leaving_lines(leaving))
        kits = self._remember(here)
        return self._to_make(rebuilding.lines_to_make(self._name, rebuilding.facts(self._name, kits), there=True))

    def _remember(self, here: Here) -> dict[str, str]:
        if self._desk is None:
            with self._frame.views() as views:
                return rebuilding.remembered(here, views)
        kits = rebuilding.fresh_kits(self._frame, here, self._desk.history)
        self._desk.history.rebuilds.keep(
            self._name, top_guid=here.pool.guid, lost=self._lose, kits=kits, now=compose.now()
        )
        return kits

    def _to_make(self, lines: Sequence[str]) -> Outcome:
        after = "then say the same command again; put in other disks where you want them (ls -l /dev/disk/by-id)"
        self._step(2, "destroy it, and make it anew", "your turn", [*lines, after])
        self._next = tuple(lines)
        return Outcome.DONE if self._desk is None else Outcome.WAITING

    # Afterwards.

    def _bring_back(self, here: Here, kits: dict[str, str], told: dict[str, KitFacts]) -> Outcome:
        self._step(2, "destroy it, and make it anew", "done")
        if lines := rebuilding.missing(here, told):
            return self._to_make(lines)
        code, found = self._parts(here, told)
        self._found = tuple(found)
        if code is not Outcome.DONE or self._desk is None:
            return code
        made = rebuilding.survey_kits(self._frame, here)
        lines = rebuilding.differences(self._frame, here, kits, made, self._lose)
        self._differences = tuple(lines)
        self._step(4, "is it as it was", f"{len(lines)} differences" if lines else "yes", lines)
        self._chains(here)
        if any("not there" in line for line in lines):
            return Outcome.FAILED
        rebuilding.keep_kits(self._desk.history, made)
        self._desk.history.rebuilds.end(self._name, compose.now())
        return Outcome.DONE

    def _parts(self, here: Here, told: dict[str, KitFacts]) -> tuple[Outcome, list[Part]]:
        """Restore each source in turn, until one cannot be restored now; return the exit code and the parts."""

        def found() -> tuple[Part, ...]:
            with self._frame.views() as views:
                return rebuilding.parts(here, told, lambda job: rebuilding.came_back(job, views, self._since))

        ends: list[Part] = []
        for place, _ in enumerate(found()):
            part = found()[place]
            if self._desk is not None and not part.back and part.job is not None:
                report = self._restore(self._desk, part.job, part.source, rebuilding.came_as_datasets(here))
                here = replace(here, pool=evacuating.look_at_pool(self._frame, self._name))
                part = found()[place]
                if not part.back or report.warnings:
                    told_why = filter(None, (report.why, *report.warnings, report.cure))
                    self._step(3, f"bring {part.source} back", report.outcome.value, list(told_why))
                    return (Outcome.FAILED if report.outcome.value != "done" else Outcome.WAITING), [*ends, part]
            ends.append(part)
            self._step(3, f"bring {part.source} back", *part_told(part))
            if part.job is None:
                return Outcome.WAITING, ends
        return Outcome.DONE, ends

    def _restore(self, desk: Desk, job: Job, source: Location, stays: tuple[str, ...]) -> RunReport:
        report = desk.do(job, run_restore, Wish(to=source, content=self._content, stays=stays, owners=False))
        self._stays.did(job.target.disk, report)
        return report

    def _chains(self, here: Here) -> None:
        found = links(self._frame, Location(path=self._name))
        self._links = found
        anew = [
            f"{job.name} to {job.target.name}: its copies lay here; poolferry run {job.name} sends them anew"
            for job in here.homes
        ]
        self._anew = tuple(job.name for job in here.homes)
        lines = [line.strip() for line in link_lines(found)]
        self._step(5, "what the next runs go on from", "told", [*lines, *anew])

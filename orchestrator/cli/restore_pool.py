"""restore pool: a pool is destroyed and made anew, in steps; the same command goes on at the right one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator import compose
from orchestrator.app.session import Desk, opened
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, pass_frame
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.app.attached_disks import Stays
    from orchestrator.app.pool_evacuation import Here
    from orchestrator.app.pool_rebuild import Part
    from orchestrator.domain.evacuation import Copy, KitFacts, Leaving, Standing
    from orchestrator.domain.job import Job
    from orchestrator.domain.place import Location
    from orchestrator.domain.run import RunReport

DONE, REFUSED, WAITS, FAILED = 0, 3, 75, 1


@click.command("pool", cls=Command, short_help="Make a pool anew, and bring all of it back.")
@click.argument("name", metavar="POOL")
@click.option("--plan", is_flag=True, help="only look and tell; change nothing, remember nothing")
@click.option(
    "--lose",
    multiple=True,
    metavar="DATASET",
    help="this may be lost; with a slash at its end, all below it too (repeatable)",
)
@click.option(
    "--trust",
    multiple=True,
    metavar="DISK",
    help="a disk that is away counts by what history knows was proved on it (repeatable)",
)
@click.option("--content", is_flag=True, help="read again every file that came back, not only guids")
@pass_frame
def pool(frame: Frame, name: str, plan: bool, lose: Sequence[str], trust: Sequence[str], content: bool) -> int:
    """Is all of it elsewhere? You destroy and create it; then all of it is brought back, compared, and each target told.

    Say the same command again after each of your own steps, and after any cut: it goes on where it was.
    """
    from orchestrator.app.attached_disks import Stays

    known = {disk.name for rotation in frame.configuration().sets for disk in rotation.disks}
    if strange := [disk for disk in trust if disk not in known]:
        raise click.UsageError(f"--trust {strange[0]}: targets.toml declares no disk of that name")
    if plan:
        with Stays(frame, None) as stays:
            return Rebuilding(frame, None, stays, name, lose, trust, content=content).tell()
    with opened(frame) as desk, Stays(frame, desk) as stays:
        return Rebuilding(frame, desk, stays, name, lose, trust, content=content).tell()


class Rebuilding:
    """One call of the command. Without a desk nothing is changed."""

    def __init__(
        self, frame: Frame, desk: Desk | None, stays: "Stays", name: str, lose: Sequence[str], trust: Sequence[str], *,
        content: bool,
    ) -> None:  # fmt: skip
        self._frame, self._desk, self._stays, self._name = frame, desk, stays, name
        self._lose, self._trust, self._content = tuple(lose), tuple(trust), content
        self._since = compose.now()
        self.value: dict[str, Any] = {"pool": name, "steps": []}

    def tell(self) -> int:
        """Goes on as far as it can; the exit code."""
        code = self._go_on()
        if self._frame.json:
            door.answer_value(self.value)
        return code

    def _step(self, number: int, title: str, state: str, lines: Sequence[str] = ()) -> None:
        self.value["steps"].append({"step": number, "title": title, "state": state, "lines": list(lines)})
        if not self._frame.json:
            door.answer([f"{number}. {title}: {state}", *(f"     {line}" for line in lines)])

    def _go_on(self) -> int:
        from orchestrator.app import pool_evacuation as evacuating
        from orchestrator.app import pool_rebuild as rebuilding

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
            return REFUSED
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

    def _old(self, here: "Here") -> int:
        from orchestrator.app import pool_evacuation as evacuating
        from orchestrator.app import pool_rebuild as rebuilding
        from orchestrator.planners.evacuation import refuse_guests, refuse_leaving

        leaving = evacuating.judged(here, self._lose, self._trust)
        self.value["datasets"] = [_standing_value(one) for one in leaving.standings]
        own = evacuating.own_place(self._frame, here.pool)
        lost, guests = refuse_leaving(here.pool, leaving), refuse_guests(here.pool)
        if refusals := [each for each in (lost, guests, own) if each is not None]:
            lines = leaving_lines(leaving)
            for each in refusals:  # what is lost stands in the lines of the datasets
                lines += [each.why, *(() if each is lost else each.evidence), f"what to do: {each.cure}"]
            self._step(1, "is all of it elsewhere", "no", lines)
            return REFUSED
        self._step(1, "is all of it elsewhere", "yes", leaving_lines(leaving))
        kits = self._remember(here)
        return self._to_make(rebuilding.lines_to_make(self._name, rebuilding.facts(self._name, kits), there=True))

    def _remember(self, here: "Here") -> dict[str, str]:
        from orchestrator.app import pool_rebuild as rebuilding

        if self._desk is None:
            with self._frame.views() as views:
                return rebuilding.remembered(here, views)
        kits = rebuilding.fresh_kits(self._frame, here, self._desk.history)
        self._desk.history.rebuilds.keep(
            self._name, top_guid=here.pool.guid, lost=self._lose, kits=kits, now=compose.now()
        )
        return kits

    def _to_make(self, lines: Sequence[str]) -> int:
        after = "then say the same command again; put in other disks where you want them (ls -l /dev/disk/by-id)"
        self._step(2, "destroy it, and make it anew", "your turn", [*lines, after])
        self.value["next"] = list(lines)
        return DONE if self._desk is None else WAITS

    # Afterwards.

    def _bring_back(self, here: "Here", kits: dict[str, str], told: "dict[str, KitFacts]") -> int:
        from orchestrator.app import pool_rebuild as rebuilding

        self._step(2, "destroy it, and make it anew", "done")
        if lines := rebuilding.missing(here, told):
            return self._to_make(lines)
        code, found = self._parts(here, told)
        self.value["parts"] = [rebuilding.part_value(part) for part in found]
        if code is not DONE or self._desk is None:
            return code
        made = rebuilding.survey_kits(self._frame, here)
        lines = rebuilding.differences(self._frame, here, kits, made, self._lose)
        self.value["differences"] = list(lines)
        self._step(4, "is it as it was", f"{len(lines)} differences" if lines else "yes", lines)
        self._chains(here)
        if any("not there" in line for line in lines):
            return FAILED
        rebuilding.keep_kits(self._desk.history, made)
        self._desk.history.rebuilds.end(self._name, compose.now())
        return DONE

    def _parts(self, here: "Here", told: "dict[str, KitFacts]") -> "tuple[int, list[Part]]":
        """Each source in turn, until one of them cannot be brought back now."""
        from orchestrator.app import pool_evacuation as evacuating
        from orchestrator.app import pool_rebuild as rebuilding
        from orchestrator.domain.fast_dataclass import replace

        def found() -> "tuple[Part, ...]":
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
                    return (FAILED if report.outcome.value != "done" else WAITS), [*ends, part]
            ends.append(part)
            self._step(3, f"bring {part.source} back", *_part_told(part))
            if part.job is None:
                return WAITS, ends
        return DONE, ends

    def _restore(self, desk: Desk, job: "Job", source: "Location", stays: tuple[str, ...]) -> "RunReport":
        from orchestrator.runner.restore.request import Wish
        from orchestrator.runner.restore.restore import run_restore

        report = desk.do(job, run_restore, Wish(to=source, content=self._content, stays=stays, owners=False))
        self._stays.did(job.target.disk, report)
        return report

    def _chains(self, here: "Here") -> None:
        from orchestrator.app.next_base import link_lines, link_values, links
        from orchestrator.domain.place import Location

        found = links(self._frame, Location(path=self._name))
        self.value["chains"] = link_values(found)
        anew = [
            f"{job.name} to {job.target.name}: its copies lay here; poolferry run {job.name} sends them anew"
            for job in here.homes
        ]
        self.value["anew"] = [job.name for job in here.homes]
        lines = [line.strip() for line in link_lines(found)]
        self._step(5, "what the next runs go on from", "told", [*lines, *anew])


def _part_told(part: "Part") -> tuple[str, list[str]]:
    if part.copy is None:
        return "no copy of it can be reached", [
            part.why,
            "plug in, attach or import one, and say the same command again",
        ]
    known = f", as of {part.copy.known_at:%Y-%m-%d %H:%M} UTC" if part.copy.known_at else ""
    point = f", point {part.copy.point}" if part.copy.point else ""
    return ("it is back" if part.back else "to be done"), [f"from {part.copy.called} ({part.copy.job}{point}{known})"]


def leaving_lines(leaving: "Leaving") -> list[str]:
    """How the datasets stand, one line each, and which copies nobody could look at."""
    lines = [f"{one.dataset}: {_standing_line(one)}" for one in leaving.standings]
    for copy in leaving.unseen:
        known = f"; history knows it as of {copy.known_at:%Y-%m-%d %H:%M} UTC" if copy.known_at else ""
        lines.append(f"not counted: {copy.job} on {copy.called} ({copy.why}{known})")
    return lines


def _standing_line(one: "Standing") -> str:
    from orchestrator.domain.units import show_count
    from orchestrator.planners.evacuation import KITS

    held = [f"{count} on {_holder(copy)}" for copy, count in one.copies]
    held += [
        f"its files on {copy.called} ({copy.job}, point {copy.point})"
        for copy in one.files
        if not copy.files[one.dataset]
    ]
    nothing = "recovery kits alone, made anew by the next runs" if one.dataset.endswith(f"/{KITS}") else "empty"
    kept = f"; it holds the copies of job {', '.join(one.keeps)}" if one.keeps else ""
    may = ", and may be lost" if one.lost and one.let_go else ""
    if not one.snapshots:
        told = f"{'; '.join(held)}{'; ' if held and one.lost else ''}{one.lost}" or nothing
        return f"{told}{kept}{may}"
    if not held:
        return f"{one.lost}{kept}{may}"
    return f"{show_count(one.snapshots, 'snapshot')}: {', '.join(held)}{f'; {one.lost}' if one.lost else ''}{kept}{may}"


def _holder(copy: "Copy") -> str:
    """The place and the job; of a disk that is away, of when that is."""
    if copy.held is not None or copy.known_at is None:
        return f"{copy.called} ({copy.job})"
    return f"{copy.called} ({copy.job}; not looked at: as history knows it, as of {copy.known_at:%Y-%m-%d %H:%M} UTC)"


def _standing_value(one: "Standing") -> dict[str, Any]:
    copies = [
        {"job": copy.job, "place": copy.place, "where": copy.where or None, "disk": copy.disk or None,
         "seen": copy.held is not None, "snapshots": count} for copy, count in one.copies
    ]  # fmt: skip
    files = [
        {"job": copy.job, "place": copy.place, "where": copy.where or None, "point": copy.point,
         "lacks": copy.files[one.dataset] or None} for copy in one.files
    ]  # fmt: skip
    return {
        "dataset": one.dataset, "snapshots": one.snapshots, "copies": copies, "files": files, "keeps": list(one.keeps),
        "lost": one.lost or None, "may_be_lost": one.let_go,
    }  # fmt: skip

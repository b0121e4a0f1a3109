"""restore pool: a pool is destroyed and made anew, in steps; the same command goes on at the right one.

Changes things.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator import compose
from orchestrator.interfaces import door
from orchestrator.interfaces.cli.frame import Command, Frame, pass_frame
from orchestrator.interfaces.cli.running import Desk, opened

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.leaving import KitFacts, Leaving, Standing
    from orchestrator.domain.place import Location
    from orchestrator.domain.run import RunReport
    from orchestrator.interfaces.rebuilding import Here, Part

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
@click.option("--content", is_flag=True, help="read again every file that came back, not only guids")
@pass_frame
def pool(frame: Frame, name: str, plan: bool, lose: Sequence[str], content: bool) -> int:
    """Is all of it elsewhere? You destroy and create it; then all of it is brought back, compared, and each target told.

    Say the same command again after each of your own steps, and after any cut: it goes on where it was.
    """
    if plan:
        return Rebuilding(frame, None, name, lose, content=content).tell()
    with opened(frame) as desk:
        return Rebuilding(frame, desk, name, lose, content=content).tell()


class Rebuilding:
    """One call of the command. Without a desk nothing is changed."""

    def __init__(self, frame: Frame, desk: Desk | None, name: str, lose: Sequence[str], *, content: bool) -> None:
        self._frame, self._desk, self._name, self._lose, self._content = frame, desk, name, tuple(lose), content
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
        from orchestrator.interfaces import rebuilding

        with self._frame.views() as views:
            here = rebuilding.look(self._frame, self._name, views)
            known, kits = views.rebuilds.of(self._name), rebuilding.remembered(here, views)
        kits = dict(known.kits) if known else kits
        told = rebuilding.facts(here, kits)
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
        from orchestrator.interfaces import rebuilding
        from orchestrator.planners.leaving import refuse_leaving

        leaving = rebuilding.judged(here, self._lose)
        self.value["datasets"] = [_standing_value(one) for one in leaving.standings]
        refusal = refuse_leaving(here.pool, leaving)
        if refusal is not None:
            lines = [*leaving_lines(leaving), refusal.why, f"what to do: {refusal.cure}"]
            self._step(1, "is all of it elsewhere", "no", lines)
            return REFUSED
        self._step(1, "is all of it elsewhere", "yes", leaving_lines(leaving))
        kits = self._remember(here)
        return self._to_make(rebuilding.lines_to_make(self._name, rebuilding.facts(here, kits), there=True))

    def _remember(self, here: "Here") -> dict[str, str]:
        from orchestrator.interfaces import rebuilding

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
        from orchestrator.interfaces import rebuilding

        self._step(2, "destroy it, and make it anew", "done")
        if lines := rebuilding.missing(here, told):
            return self._to_make(lines)
        code, found = self._parts(here, told)
        self.value["parts"] = [rebuilding.part_value(part) for part in found]
        if code is not DONE or self._desk is None:
            return code
        lines = rebuilding.differences(self._frame, here, kits, self._lose)
        self.value["differences"] = list(lines)
        self._step(4, "is it as it was", f"{len(lines)} differences" if lines else "yes", lines)
        self._chains()
        if any("not there" in line for line in lines):
            return FAILED
        rebuilding.fresh_kits(self._frame, here, self._desk.history)
        self._desk.history.rebuilds.end(self._name, compose.now())
        return DONE

    def _parts(self, here: "Here", told: "dict[str, KitFacts]") -> "tuple[int, list[Part]]":
        """Each source in turn, until one of them cannot be brought back now."""
        from dataclasses import replace

        from orchestrator.interfaces import rebuilding

        ends: list[Part] = []
        for place, _ in enumerate(rebuilding.parts(here, told)):
            part = rebuilding.parts(here, told)[place]
            if self._desk is not None and not part.back and part.job is not None:
                report = self._restore(self._desk, part.job, part.source)
                here = replace(here, pool=rebuilding.look_at_pool(self._frame, self._name, part.job))
                part = rebuilding.parts(here, told)[place]
                if not part.back or report.warnings:
                    self._step(3, f"bring {part.source} back", report.outcome.value, [report.why, *report.warnings])
                    return (FAILED if report.outcome.value != "done" else WAITS), [*ends, part]
            ends.append(part)
            self._step(3, f"bring {part.source} back", *_part_told(part))
            if part.job is None:
                return WAITS, ends
        return DONE, ends

    def _restore(self, desk: Desk, job: "Job", source: "Location") -> "RunReport":
        from orchestrator.runner.restore import run_restore
        from orchestrator.runner.wishes import Wish

        return desk.do(job, run_restore, Wish(to=source, content=self._content))

    def _chains(self) -> None:
        from orchestrator.domain.place import Location
        from orchestrator.interfaces.chains import link_lines, link_values, links

        found = links(self._frame, Location(path=self._name))
        self.value["chains"] = link_values(found)
        self._step(5, "what the next runs go on from", "told", [line.strip() for line in link_lines(found)])


def _part_told(part: "Part") -> tuple[str, list[str]]:
    if part.copy is None:
        return "no copy of it can be reached", [
            part.why,
            "plug in, attach or import one, and say the same command again",
        ]
    known = f", as of {part.copy.known_at:%Y-%m-%d %H:%M} UTC" if part.copy.known_at else ""
    return ("it is back" if part.back else "to be done"), [f"from {part.copy.place} ({part.copy.job}{known})"]


def leaving_lines(leaving: "Leaving") -> list[str]:
    """How the datasets stand, one line each, and which copies nobody could look at."""
    lines = [f"{one.dataset}: {_standing_line(one)}" for one in leaving.standings]
    for copy in leaving.unseen:
        known = f"; history knows it as of {copy.known_at:%Y-%m-%d %H:%M} UTC" if copy.known_at else ""
        lines.append(f"not counted: {copy.job} on {copy.place} ({copy.why}{known})")
    return lines


def _standing_line(one: "Standing") -> str:
    from orchestrator.domain.units import show_count

    held = ", ".join(f"{count} on {place} ({job})" for job, place, count in one.copies)
    may = ", and may be lost" if one.lost and one.let_go else ""
    if not held:
        return f"{one.lost or 'empty'}{may}"
    return f"{show_count(one.snapshots, 'snapshot')}: {held}{f'; {one.lost}' if one.lost else ''}{may}"


def _standing_value(one: "Standing") -> dict[str, Any]:
    copies = [{"job": job, "place": place, "snapshots": count} for job, place, count in one.copies]
    return {
        "dataset": one.dataset, "snapshots": one.snapshots, "copies": copies, "lost": one.lost or None,
        "may_be_lost": one.let_go,
    }  # fmt: skip

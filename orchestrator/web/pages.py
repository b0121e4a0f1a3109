"""The pages: each takes values from a use case and hands them to its template."""

from collections.abc import Callable, Mapping
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import JOB_NAME
from orchestrator.web.live import LivePart
from orchestrator.web.templates import Templates

if TYPE_CHECKING:
    from orchestrator.app.point_index import PointIndex, PointIndexCache

PAGE_SIZE = 50
_CHART_RUNS, _SHOWN_RUNS = 60, 10
_MOST_STEPS = 400
_FOLDER_SIZE, _MOST_FOUND = 500, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRequest:
    """A question for a folder of a point. `sought`: a part of names; `ticked`: paths to bring back; `first`: of a large folder."""

    job: str
    point: str
    path: bytes
    sought: str
    ticked: tuple[bytes, ...]
    first: int


class NoSuchPage(Exception):
    """An address that names nothing. The message says what is missing."""


class Pages:
    """All pages as text. Each method raises OrchestratorError where its values cannot be read, and NoSuchPage."""

    def __init__(self, settings: Settings, *, demo: bool = False) -> None:
        self._settings = settings
        self._demo = demo

    @cached_property
    def templates(self) -> Templates:
        """Return the templates, with what each page says of this machine."""
        import os

        return Templates(host="a made-up machine" if self._demo else os.uname().nodename, demo=self._demo)

    def _render(self, name: str, **values: object) -> str:
        return self.templates.render(name, repeat=self._repeat, **values)

    def _repeat(self, command: str) -> str:
        """Return a command as a person types it; a made-up machine has the usual folders."""
        return f"poolferry {command}" if self._demo else self._settings.repeat(command)

    def promises(self) -> str:
        """Return the front page."""
        return self._render("promises.html", **self._promise_values())

    def _promise_values(self) -> dict[str, Any]:
        from orchestrator.app.job_status import survey_jobs
        from orchestrator.views.source_rows import headline, source_rows

        now = compose.now()
        found = survey_jobs(self._settings, (), now)
        rows = source_rows(found, now)
        return {"found": found, "rows": rows, "headline": headline(found, rows)}

    def job(self, name: str, year: int | None) -> str:
        """Return the page of one job."""
        from orchestrator.app.job_status import survey_jobs
        from orchestrator.app.past import list_points, list_runs
        from orchestrator.app.schedule_report import survey_schedule
        from orchestrator.views.point_calendar import calendar_span, point_calendars, point_years
        from orchestrator.views.run_charts import run_charts
        from orchestrator.views.run_history import PointTable
        from orchestrator.views.schedule import describe_schedule
        from orchestrator.views.source_rows import source_row

        self._require_job(name)
        now = compose.now()
        overview = survey_jobs(self._settings, (name,), now)
        (status,) = overview.jobs
        found = list_points(self._settings, (name,), look=False)
        table = PointTable(jobs=found.jobs, known=found.known, used=found.used, problems=found.problems)
        runs = list_runs(self._settings, name, _CHART_RUNS)
        span = calendar_span(now.astimezone().date(), year)
        return self._render(
            "job.html", job=status.job, row=source_row(status, overview.coming, now), calendars=point_calendars(table, name, span),
            span=span, year=year, years=point_years(table.known[name]), charts=run_charts(runs), runs=runs[:_SHOWN_RUNS],
            schedule=describe_schedule(status.job), coming=survey_schedule(self._settings, (name,), now), table=table,
        )  # fmt: skip

    def _require_job(self, name: str) -> None:
        if not JOB_NAME.fullmatch(name) or name not in [job.name for job in self._settings.configuration().jobs]:
            raise NoSuchPage("there is no job of this name")

    @cached_property
    def _indexes(self) -> "PointIndexCache":
        from orchestrator.app.point_index import PointIndexCache, index_point

        if self._demo:
            from orchestrator.app.demo import index_made_up

            return PointIndexCache(lambda *_: index_made_up(self._settings))
        return PointIndexCache(lambda job, point: index_point(self._settings, job, point))

    def points(self, request: PointRequest) -> str:
        """Return a folder of a restore point, or what a search found in it; and how to bring back what was ticked."""
        from orchestrator.domain.command_line import quoted
        from orchestrator.views.point_page import crumbs, entry_rows, restore_commands

        job, point = request.job, request.point
        self._require_job(job)
        known = self._point_names(job)
        if point not in known:
            raise NoSuchPage(f"history knows no such point of {job}")
        index, sought = self._open_index(job, point), request.sought.strip()
        page = index.folder(request.path, request.first, _FOLDER_SIZE)
        if page is None:
            raise NoSuchPage(f"there is no such folder in point {point} of {job}")
        entries = index.find(sought, _MOST_FOUND) if sought else page.entries
        return self._render(
            "points.html", job=job, point=point, crumbs=crumbs(job, point, request.path), sought=sought, total=page.total,
            first=request.first, size=_FOLDER_SIZE, entries=index.entries, most=_MOST_FOUND,
            rows=entry_rows(job, point, entries, request.ticked),
            commands=restore_commands(self._repeat, job, point, request.ticked),
            find_command=self._repeat(f"find {job} {quoted(f'*{sought}*')}"),
        )  # fmt: skip

    def _point_names(self, job: str) -> tuple[str, ...]:
        from orchestrator.app.past import list_points

        return tuple(
            sorted({each.name for each in list_points(self._settings, (job,), look=False).known[job]}, reverse=True)
        )

    def _open_index(self, job: str, point: str) -> "PointIndex":
        from orchestrator.domain.errors import OrchestratorError

        try:
            return self._indexes.get(job, point)
        except OSError as error:
            raise OrchestratorError(
                f"the manifest of point {point} of {job} cannot be read from here: {error.strerror or error}",
                hint=f"`{self._repeat(f'ls {job} --point {point}')}` lists it, as root",
            ) from error

    def runs(self, job: str | None, before: int | None) -> str:
        """Return one page of the list of runs."""
        from orchestrator.app.past import page_runs
        from orchestrator.domain.errors import DeclarationError

        names = [each.name for each in self._settings.configuration().jobs]
        if job is not None and not JOB_NAME.fullmatch(job):
            raise NoSuchPage("there is no job of this name")
        try:
            found = page_runs(self._settings, job, before, PAGE_SIZE)
        except DeclarationError:
            raise NoSuchPage("there is no job of this name, and no run of one") from None
        return self._render("runs.html", found=found, job=job, before=before, names=names)

    def run(self, number: int) -> str:
        """Return the page of one run."""
        return self._render("run.html", **self._run_values(number))

    def _run_values(self, number: int) -> dict[str, Any]:
        from orchestrator.app.past import look_at_run
        from orchestrator.views.run_page import run_page

        try:
            look = look_at_run(self._settings, str(number))
        except WrongRequest:
            raise NoSuchPage(f"history knows no run {number}") from None
        return {
            "look": look,
            "page": run_page(look.story.story, look.step, look.progress, compose.now(), most=_MOST_STEPS),
        }

    def disks(self) -> str:
        """Return the page of the removable disks."""
        return self._render("disks.html", **self._disk_values())

    def _disk_values(self) -> dict[str, Any]:
        from orchestrator.app.disk_book import recorded_sets
        from orchestrator.views.disk_cards import disk_cards

        now = compose.now()
        return {"sets": disk_cards(recorded_sets(self._settings, now), now)}

    def pools(self) -> str:
        """Return the page of the watched pools."""
        from orchestrator.app.watched_pools import list_watched_pools

        return self._render("pools.html", pools=list_watched_pools(self._settings, compose.now()))

    def failure(self, status: int, why: str, hint: str = "") -> str:
        """Return the page of an error."""
        return self._render("error.html", status=status, why=why, hint=hint)

    def part(self, topic: str) -> LivePart:
        """Return a live part. Raises: NoSuchPage; what cannot be read is said in its place."""
        from orchestrator.domain.errors import OrchestratorError

        try:
            return self._part(topic)
        except OrchestratorError as error:
            return LivePart(html=self._render("_failure.html", why=error.why, hint=error.hint))

    def _part(self, topic: str) -> LivePart:
        parts: Mapping[str, Callable[[], dict[str, Any]]] = {
            "promises": self._promise_values,
            "disks": self._disk_values,
        }
        if topic in parts:
            return LivePart(html=self._render(f"_{topic}.html", **parts[topic]()))
        kind, _, number = topic.partition("/")
        if kind != "runs" or not is_number(number):
            raise NoSuchPage("there is nothing live of this name")
        values = self._run_values(int(number))
        return LivePart(
            html=self._render("_run.html", **values), over=values["look"].story.story.run.outcome is not None
        )


def is_number(text: str) -> bool:
    """Return True for the number of a run: such as a database holds."""
    return text.isascii() and text.isdigit() and len(text) < 19


def parse_year(text: str, today: date) -> int | None:
    """Return the year that an address names; None for this one, and for what is none."""
    year = int(text) if text.isascii() and text.isdigit() and len(text) == 4 else None
    return year if year is not None and 1970 <= year < today.year else None

"""The pages: each takes values from a use case and hands them to its template."""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from orchestrator import compose
from orchestrator.app.history_cache import HistoryCache
from orchestrator.app.overview_cache import OverviewCache
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.act import MOST_PATHS, SPANS
from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import JOB_NAME, show_name
from orchestrator.web.act_forms import ActForm, FormToken, job_address, parse_act_form
from orchestrator.web.live import LivePart
from orchestrator.web.templates import Templates

if TYPE_CHECKING:
    from orchestrator.app.point_index import PointIndex, PointIndexCache
    from orchestrator.domain.act import ActAnswer, ActRequest
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.views.acts import ActRow
    from orchestrator.views.source_rows import Headline, SourceRow
    from orchestrator.views.status import Overview

PAGE_SIZE = 50
_CHART_RUNS, _SHOWN_RUNS = 60, 10
_MOST_STEPS = 400
_RECENT_ACTS = 20
_REPORT_MONTHS = 13
_TROUBLE_KEPT_S = 3.0
_FRONT_S = 5.0  # that a start may wait for the front page
_FOLDER_SIZE, _MOST_FOUND = 500, 200
_LONGEST_CARRIED = 3000  # bytes of an address: what was ticked goes along from folder to folder
_MOST_CARDS, _MOST_FULL = 40, 50  # jobs that need a person, with all that helps; jobs with more than a line


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


class NotAccepted(Exception):
    """An act that the daemon did not accept, or that it could not be asked for. The message says why.

    `status`: of the answer; `page`: what says so, with the way back to the button and the command that can.
    """

    def __init__(self, why: str, *, status: int, page: str) -> None:
        super().__init__(why)
        self.status, self.page = status, page


class ActControl(Protocol):
    """The daemon as pages see it."""

    def trouble(self) -> "OrchestratorError | None":
        """Return why it cannot be asked now; None: it can."""
        ...

    def ask(self, request: "ActRequest") -> "ActAnswer":
        """Ask for an act. Raises: OrchestratorError."""
        ...


class Pages:
    """All pages as text. Each method raises OrchestratorError where its values cannot be read, and NoSuchPage.

    `control`: asked for acts; `fleet`: each page leads to those over all hosts.
    """

    def __init__(self, settings: Settings, control: ActControl, *, demo: bool = False, fleet: bool = False) -> None:
        self._settings, self._control = settings, control
        self._demo, self._fleet = demo, fleet
        self._token = FormToken()
        self._overviews = OverviewCache(settings)
        self._made_pages = HistoryCache[str](settings)  # and parts of pages
        self._trouble: tuple[float, OrchestratorError | None] | None = None
        self._front: tuple[Overview, list[str], Headline, LivePart] | None = None

    @cached_property
    def templates(self) -> Templates:
        """Return the templates, with what each page says of this machine."""
        return Templates(
            host="a made-up machine" if self._demo else os.uname().nodename, demo=self._demo, fleet=self._fleet
        )

    def render(self, name: str, **values: object) -> str:
        """Return a page with what each page has."""
        return self.templates.render(
            name, repeat=self._repeat, trouble=self._control_trouble(), token=self._token.value, spans=SPANS, **values
        )

    def _render_live(self, name: str, values: Mapping[str, object]) -> str:
        """Return a page around its live part, which says of which state that is: a stream then sends no more than what changed since."""
        return self.render(name, part=LivePart(marked=self.render(f"_{name}", **values)), **values)

    def _control_trouble(self) -> "OrchestratorError | None":
        """Return why no act can be asked for now; looked at once in some seconds."""
        now = compose.monotonic()
        if self._trouble is None or now - self._trouble[0] > _TROUBLE_KEPT_S:
            self._trouble = now, self._control.trouble()
        return self._trouble[1]

    def warm_front(self) -> None:
        """Make the front page before anybody asks: its imports and templates, the configuration and the state of all jobs are then at hand.

        A start does not wait for it longer than a while, as the history may be locked; it goes on beside then.
        """
        front = threading.Thread(target=self._warm_front, daemon=True)
        front.start()
        front.join(_FRONT_S)

    def _warm_front(self) -> None:
        self._made(self.promises)

    def warm(self, over: Callable[[], bool]) -> None:
        """Make the other pages that the front page leads to, for what they import and for their templates. `over`: nobody needs more."""
        for make in (lambda: self.runs(None, None), self.disks, self.pools, self.reading, self.acts, self._first_job):
            if over():
                return
            self._made(make)

    def _first_job(self) -> str:
        return self.job(self._settings.configuration().jobs[0].name, None)

    def _made(self, make: Callable[[], object]) -> None:
        """Make a page that nobody waits for: whatever is wrong, who asks for it is told, and the others are served."""
        from orchestrator.domain.errors import OrchestratorError

        try:
            make()
        except (OrchestratorError, WrongRequest, NoSuchPage, OSError, IndexError):
            pass
        except Exception:
            logging.getLogger(__name__).exception("a page could not be made before it was asked for")
        self._trouble = None  # who asks for a page a moment later may find a daemon

    def ask(self, body: bytes, user: str) -> str:
        """Ask for the act of a form; return the address that shows what becomes of it. Raises: BadForm · NotAccepted.

        `user`: as a reverse proxy names who asks; empty: there is none.
        """
        from orchestrator.domain.errors import OrchestratorError

        form = parse_act_form(body, self._token, user)
        try:
            answer = self._control.ask(form.request)
        except OrchestratorError as error:
            why = f"{error.why}, so nothing was asked for"
            raise self._not_accepted(form, why, 503, hint=error.hint, typed=True) from error
        if not answer.accepted:
            raise self._not_accepted(form, answer.said, 409, hint=self._look_hint(form.request), typed=answer.later)
        return form.address(answer.act)

    def _not_accepted(self, form: ActForm, why: str, status: int, *, hint: str, typed: bool) -> NotAccepted:
        from orchestrator.views.acts import typed_commands

        commands = typed_commands(form.request, self._repeat) if typed else ()
        # What is not there any more has no page either.
        back = form.origin if typed or not form.request.point else job_address(form.request.job)
        page = self.render("error.html", status=409, why=why, hint=hint, commands=commands, back=back)
        return NotAccepted(why, status=status, page=page)

    def _look_hint(self, request: "ActRequest") -> str:
        """Return which command shows what there is to ask for."""
        words = "disks" if request.disk else f"points {request.job}" if request.point else "status"
        return f"`{self._repeat(words)}`"

    def acts(self) -> str:
        """Return the list of the newest acts."""
        from orchestrator.app.acts import list_acts
        from orchestrator.views.acts import act_row

        now = compose.now()
        return self.render("acts.html", rows=[act_row(each, now) for each in list_acts(self._settings, PAGE_SIZE)])

    def act(self, number: int) -> str:
        """Return the page of one act."""
        return self._render_live("act.html", self._act_values(number))

    def _act_values(self, number: int) -> dict[str, Any]:
        from orchestrator.app.acts import find_act
        from orchestrator.views.acts import act_row

        found = find_act(self._settings, number)
        if found is None:
            raise NoSuchPage(f"history knows no act {number}")
        return {"act": act_row(found, compose.now()), "runs": [self._run_values(run) for run in sorted(found.runs)]}

    def _recent_acts(self, subject: str | None = None) -> "tuple[ActRow, ...]":
        from orchestrator.app.acts import list_acts
        from orchestrator.views.acts import recent_acts

        return recent_acts(list_acts(self._settings, _RECENT_ACTS, subject=subject), compose.now())

    def _repeat(self, command: str) -> str:
        """Return a command as a person types it; a made-up machine has the usual folders."""
        return f"poolferry {command}" if self._demo else self._settings.repeat(command)

    def promises(self) -> str:
        """Return the front page."""
        headline, part = self._promise_part()
        return self.render("promises.html", headline=headline, part=part)

    def _promise_part(self) -> "tuple[Headline, LivePart]":
        """Return the first sentence and the live part of the front page; as they were where nothing was judged anew since."""
        from orchestrator.app.uncovered import recall_uncovered
        from orchestrator.views.disks import set_warnings
        from orchestrator.views.source_rows import headline, source_rows

        now, trouble = compose.now(), self._control_trouble()
        found, said = self._overviews.get(now), [trouble.why, trouble.hint] if trouble else []
        if self._front is not None and self._front[0] is found and self._front[1] == said:
            return self._front[2:]
        rows = source_rows(found, now)
        first = headline(found, rows)
        text = self.render(
            "_promises.html", found=found, rows=rows, headline=first, asked=self._recent_acts(), set_warnings=set_warnings,
            uncovered=recall_uncovered(self._settings), most_cards=_MOST_CARDS, most_full=_MOST_FULL,
        )  # fmt: skip
        self._front = found, said, first, LivePart(marked=text)
        return self._front[2:]

    def job(self, name: str, year: int | None) -> str:
        """Return the page of one job. `year`: of its calendar; None: the newest weeks."""
        part = self._job_part(name, year)
        return self.render("job.html", part=part, job=self._settings.configuration().job(name), year=year)

    def _job_part(self, name: str, year: int | None) -> LivePart:
        """Return the live part of a job's page: all but the commands to type. What is past is made anew only where something was written."""
        values = self._job_values(name)
        row = values["row"]
        shown = (name, year, row.running and row.running.run, row.newest, row.enrolls)
        past = self._made_pages.get(shown, lambda: self._job_past(name, year, row))
        return LivePart(marked=self.render("_job.html", **values) + past)

    def _job_past(self, name: str, year: int | None, row: "SourceRow") -> str:
        from orchestrator.app.past import list_points, list_runs
        from orchestrator.views.point_calendar import calendar_span, point_calendars, point_years
        from orchestrator.views.run_charts import run_charts

        table = list_points(self._settings, (name,), look=False)
        runs = list_runs(self._settings, name, _CHART_RUNS)
        span = calendar_span(compose.now().astimezone().date(), year)
        return self.render(
            "_job_past.html", job=table.jobs[0], row=row, calendars=point_calendars(table, name, span), year=year,
            years=point_years(table.known[name]), charts=run_charts(runs), runs=runs[:_SHOWN_RUNS], table=table,
        )  # fmt: skip

    def _job_values(self, name: str) -> dict[str, Any]:
        from orchestrator.app.acts import list_acts
        from orchestrator.app.job_status import survey_jobs
        from orchestrator.views.acts import newest_plan, recent_acts
        from orchestrator.views.schedule import describe_schedule
        from orchestrator.views.source_rows import source_row

        self._require_job(name)
        now = compose.now()
        overview = survey_jobs(self._settings, (name,), now)
        acts = list_acts(self._settings, _RECENT_ACTS, subject=name)
        return {
            "row": source_row(overview.jobs[0], overview.coming, now), "asked": recent_acts(acts, now),
            "planned": newest_plan(acts, now), "job": overview.jobs[0].job, "schedule": describe_schedule(overview.jobs[0].job),
        }  # fmt: skip

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
        from orchestrator.views.point_page import crumbs, entry_rows, restore_commands, restore_plans

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
        here, ticked = (
            {each.path for each in entries},
            urlencode([("take", show_name(each)) for each in request.ticked]),
        )
        return self.render(
            "points.html", job=job, point=point, crumbs=crumbs(job, point, request.path), sought=sought, total=page.total,
            first=request.first, size=_FOLDER_SIZE, entries=index.entries, most=_MOST_FOUND,
            rows=entry_rows(job, point, entries, request.ticked),
            commands=restore_commands(self._repeat, job, point, request.ticked), plans=restore_plans(self._repeat, job, point, request.ticked),
            ticked=list(map(show_name, request.ticked)), most_paths=MOST_PATHS,
            elsewhere=[show_name(each) for each in request.ticked if each not in here],
            carried=f"?{ticked}" if 0 < len(ticked) < _LONGEST_CARRIED else "",
            find_command=self._repeat(f"find {job} {quoted(f'*{sought}*')}"),
        )  # fmt: skip

    def versions(self, job: str, path: bytes, before: str | None) -> str:
        """Return one path in all points of a job, side by side."""
        from orchestrator.app.path_versions import list_path_versions
        from orchestrator.views.point_page import fold_versions, version_rows, versions_address

        self._require_job(job)
        if self._demo:
            from orchestrator.app.demo import versions_made_up

            found = versions_made_up(self._indexes.get(job, ""), self._point_names(job), path)
        else:
            found = list_path_versions(self._settings, job, path, before)
        if before is None and not any(each.entry for each in found.found) and found.older is None:
            raise NoSuchPage(f"no point of {job} that can be read here holds this path")
        return self.render(
            "versions.html", job=job, path=show_name(path), older=found.older, before=before, address=versions_address(job, path),
            groups=fold_versions(version_rows(job, path, found.found, whole=found.older is None)),
            find_command=self._repeat(f"find {job} -- {quoted(os.fsdecode(path))}"),
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
                hint=f"`{self._repeat(f'ls {job} --point {quoted(point)}')}` lists it, as root",
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
        return self.render("runs.html", found=found, job=job, before=before, names=names)

    def run(self, number: int) -> str:
        """Return the page of one run."""
        return self._render_live("run.html", self._run_values(number))

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
        return self._render_live("disks.html", self._disk_values())

    def _disk_values(self) -> dict[str, Any]:
        from orchestrator.app.disk_book import recorded_sets
        from orchestrator.views.disk_cards import disk_cards

        now = compose.now()
        sets = recorded_sets(self._settings, now)
        names = {row.member.disk.name for each in sets for row in each.disks}
        asked = [each for each in self._recent_acts() if not each.job and each.subject in names]
        return {"sets": disk_cards(sets, now), "asked": asked}

    def pools(self) -> str:
        """Return the page of the watched pools."""
        from orchestrator.app.watched_pools import list_watched_pools

        return self.render("pools.html", pools=list_watched_pools(self._settings, compose.now()))

    def reading(self) -> str:
        """Return the page of what was read again, and how long ago; as it was where nothing was written since."""
        return self._made_pages.get("reading", self._reading)

    def _reading(self) -> str:
        from orchestrator.app.read_status import survey_reading
        from orchestrator.views.read_status import read_row

        now = compose.now()
        rows = [
            read_row(
                each.job,
                each.place,
                each.status,
                limit=each.limit,
                promised=each.promised,
                now=now,
                promise=each.promise,
            )
            for each in survey_reading(self._settings, now)
        ]
        return self.render("reading.html", rows=rows)

    def report(self, year: int, month: int) -> str:
        """Return the report of a month."""
        from orchestrator.app.month_report import report_month
        from orchestrator.views.acts import act_row
        from orchestrator.views.month_report import month_row, months_before

        now = compose.now()
        found = report_month(self._settings, year, month, now)
        rows = [
            month_row(
                each.job, begun=each.begun, gap=each.gap, kept=each.kept, well=each.well, badly=each.badly, points=each.points,
                moved_bytes=each.moved_bytes, readings=each.readings, read_bytes=each.read_bytes, unsound=each.unsound,
                drills=each.drills, failed_drills=each.failed_drills,
            )
            for each in found.jobs
        ]  # fmt: skip
        others = months_before(now.astimezone().date().replace(day=28) + timedelta(days=7), _REPORT_MONTHS)
        acts = [act_row(each, now) for each in found.acts]
        return self.render("report.html", found=found, rows=rows, acts=acts, others=others)

    def failure(self, status: int, why: str, hint: str = "") -> str:
        """Return the page of an error."""
        return self.render("error.html", status=status, why=why, hint=hint, commands=(), back="/")

    def part(self, topic: str) -> LivePart:
        """Return a live part. Raises: NoSuchPage; what cannot be read is said in its place."""
        from orchestrator.domain.errors import OrchestratorError

        try:
            return self._part(topic)
        except OrchestratorError as error:
            return LivePart(marked=self.render("_failure.html", why=error.why, hint=error.hint))

    def _part(self, topic: str) -> LivePart:
        if topic == "promises":
            return self._promise_part()[1]
        if topic == "disks":
            return LivePart(marked=self.render("_disks.html", **self._disk_values()))
        kind, _, number = topic.partition("/")
        if kind == "jobs":
            name, of_year, asked = number.partition("/")
            year = parse_year(asked, compose.now().astimezone().date())
            if of_year and year is None:
                raise NoSuchPage("there is no such year")
            return self._job_part(name, year)
        if kind == "acts" and is_number(number):
            values = self._act_values(int(number))
            return LivePart(marked=self.render("_act.html", **values), over=values["act"].kind != "live")
        if kind != "runs" or not is_number(number):
            raise NoSuchPage("there is nothing live of this name")
        values = self._run_values(int(number))
        return LivePart(
            marked=self.render("_run.html", **values), over=values["look"].story.story.run.outcome is not None
        )


def is_number(text: str) -> bool:
    """Return True for the number of a run: such as a database holds."""
    return text.isascii() and text.isdigit() and len(text) < 19


def parse_year(text: str, today: date) -> int | None:
    """Return the year that an address names; None for this one, and for what is none."""
    year = int(text) if text.isascii() and text.isdigit() and len(text) == 4 else None
    return year if year is not None and 1970 <= year < today.year else None

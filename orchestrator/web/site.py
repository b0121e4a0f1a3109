"""The routes: addresses to pages, errors to pages, and the guard around all."""

import asyncio
import gzip
import re
from collections.abc import AsyncGenerator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from orchestrator import compose
from orchestrator.app.settings import WrongRequest
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.names import POINT_NAME, parse_name
from orchestrator.web.act_forms import FORM_TYPE, LONGEST_FORM, BadForm
from orchestrator.web.fleet_pages import FleetPages
from orchestrator.web.guard import (
    COOKIE,
    ENTRY,
    EntryKey,
    GuardRefusal,
    NobodyNamed,
    ProxyUser,
    RequestGuard,
    UserUnknown,
)
from orchestrator.web.live import LiveStreams
from orchestrator.web.pages import NoSuchPage, NotAccepted, Pages, PointRequest, is_number, parse_year
from orchestrator.web.templates import ASSETS, read_asset

_PATIENCE_S = 10.0  # for the body of a form
_LEAST_PACKED = 8 << 10  # bytes
_MOST_MADE = 30  # pages at once; the library has 40 threads
_KEPT = "public, max-age=31536000, immutable"


class Site:
    """The whole site as one ASGI program. `routes`: all addresses; `streams`: those that are open, to be ended with the server; `warm`:
    makes pages once before they are asked for.

    `proxy_user`: given only where a unix socket is served; `fleet`: with the pages over all hosts.
    """

    def __init__(
        self, pages: Pages, *, names: tuple[str, ...] = (), key: EntryKey | None = None, proxy_user: ProxyUser | None = None,
        fleet: FleetPages | None = None,
    ) -> None:  # fmt: skip
        self._pages, self._key, self._proxy_user, self._fleet = pages, key, proxy_user, fleet
        self.streams = LiveStreams(pages.part)
        self.warm = pages.warm
        self._turns = asyncio.Semaphore(_MOST_MADE)
        self.routes = self._routes()
        inner = Starlette(routes=self.routes, exception_handlers=self._failures())
        inner.router.redirect_slashes = False  # //evil.example/ would lead there
        self.program = RequestGuard(inner, names=names, key=key, refuse=self._refused)

    def _routes(self) -> list[Route]:
        pages = self._pages
        return [
            Route("/", _page(lambda _: pages.promises())),
            Route("/jobs/{name}", self._page(self._job)),
            Route("/runs", self._page(self._runs)),
            Route("/runs/{number}", self._page(self._run)),
            Route("/points/{job}/{point}", self._page(self._points)),
            Route("/points/{job}/{point}/{path:path}", self._page(self._points)),
            Route("/versions/{job}/{path:path}", self._page(self._versions)),
            Route("/disks", self._page(lambda _: pages.disks())),
            Route("/pools", self._page(lambda _: pages.pools())),
            Route("/reading", self._page(lambda _: pages.reading())),
            Route("/report", self._page(lambda _: pages.report(*_this_month()))),
            Route("/report/{month}", self._page(self._report)),
            Route("/acts", self._page(lambda _: pages.acts())),
            Route("/acts", self._act, methods=["POST"]),
            Route("/acts/{number}", self._page(self._one_act)),
            Route("/live/{topic:path}", self._live),
            Route("/static/{name}", _asset),
            Route("/favicon.ico", lambda _: RedirectResponse("/static/icon.svg", 301)),
            Route(ENTRY, self._enter),
            *(
                [
                    Route("/fleet", self._page(self._hosts)),
                    Route("/fleet/runs", self._page(self._fleet_runs)),
                    Route("/fleet/pools", self._page(self._fleet_pools)),
                    Route("/fleet/orders", self._page(lambda _: self._of_fleet().orders())),
                    Route("/fleet/permits", self._page(lambda _: self._of_fleet().permits())),
                ]
                if self._fleet
                else []
            ),
        ]

    def _page(self, make: Callable[[Request], str]) -> Callable[[Request], Awaitable[Response]]:
        """Return the answer with a page that may wait for history; not all threads do: some are left for the front page, which does not."""

        async def answer(request: Request) -> Response:
            async with self._turns:
                return await run_in_threadpool(_page(make), request)

        return answer

    def _hosts(self, request: Request) -> str:
        asked = request.query_params
        return self._of_fleet().hosts(asked.get("name", "")[:100], asked.get("state", ""))

    def _fleet_runs(self, request: Request) -> str:
        asked = request.query_params
        return self._of_fleet().runs(asked.get("host", "")[:100], asked.get("job", "")[:200], asked.get("outcome", ""))

    def _fleet_pools(self, request: Request) -> str:
        return self._of_fleet().pools(request.query_params.get("host", "")[:100])

    def _of_fleet(self) -> FleetPages:
        if self._fleet is None:
            raise NoSuchPage("this is the page of one host")
        return self._fleet

    def _job(self, request: Request) -> str:
        year = parse_year(request.query_params.get("year", ""), compose.now().astimezone().date())
        return self._pages.job(request.path_params["name"], year)

    def _runs(self, request: Request) -> str:
        before = request.query_params.get("before", "")
        return self._pages.runs(request.query_params.get("job") or None, int(before) if is_number(before) else None)

    def _run(self, request: Request) -> str:
        number = request.path_params["number"]
        if not is_number(number):
            raise NoSuchPage("a run has a number")
        return self._pages.run(int(number))

    def _points(self, request: Request) -> str:
        asked, named = request.query_params, request.path_params
        first = asked.get("first", "")
        return self._pages.points(
            PointRequest(
                job=named["job"], point=named["point"], path=_path(named.get("path", "")), sought=asked.get("q", "")[:200],
                ticked=tuple(dict.fromkeys(map(_path, asked.getlist("take")))), first=int(first) if is_number(first) else 0,
            )
        )  # fmt: skip

    def _versions(self, request: Request) -> str:
        before = request.query_params.get("before", "")
        path = _path(request.path_params["path"])
        if not path or (before and not POINT_NAME.fullmatch(before)):
            raise NoSuchPage("there is no such path")
        return self._pages.versions(request.path_params["job"], path, before or None)

    def _report(self, request: Request) -> str:
        found = re.fullmatch(r"(20[0-9]{2}|19[7-9][0-9])-(0[1-9]|1[0-2])", request.path_params["month"])
        if found is None or (int(found[1]), int(found[2])) > _this_month():
            raise NoSuchPage("a report is of a month, such as 2026-11, that has begun")
        return self._pages.report(int(found[1]), int(found[2]))

    def _one_act(self, request: Request) -> str:
        number = request.path_params["number"]
        if not is_number(number):
            raise NoSuchPage("an act has a number")
        return self._pages.act(int(number))

    async def _act(self, request: Request) -> Response:
        """Ask for an act, and lead to the page that shows what becomes of it."""
        body = await _form_body(request)
        if body is None:
            return HTMLResponse(self._pages.failure(413, "this is more than any form of ours holds"), 413)
        try:
            user = self._proxy_user.read(request.headers.getlist(self._proxy_user.header)) if self._proxy_user else ""
            return RedirectResponse(await run_in_threadpool(self._pages.ask, body, user), 303)
        except NobodyNamed as error:
            return HTMLResponse(self._pages.failure(403, str(error)), 403)
        except BadForm as error:
            return HTMLResponse(self._pages.failure(400, str(error)), 400)
        except NotAccepted as error:
            return HTMLResponse(error.page, error.status)

    async def _live(self, request: Request) -> Response:
        topic = request.path_params["topic"]
        if self.streams.full:
            return Response("too many pages are open; close some\n", 503, {"Retry-After": "60"}, "text/plain")
        # A browser that connects anew says the last it got; what its page was made with may be older.
        shown = request.headers.get("last-event-id") or request.query_params.get("shown", "")
        events = self.streams.stream(topic, shown)
        first = await anext(events)  # an address that names nothing is said before the stream begins
        if request.method == "HEAD":
            await events.aclose()
            return Response(media_type="text/event-stream")  # a stream of nothing would be held open
        unheld = {"X-Accel-Buffering": "no"}  # nginx would hold it back until its buffer is full
        return StreamingResponse(_after(first, events), media_type="text/event-stream", headers=unheld)

    def _enter(self, request: Request) -> Response:
        if request.method == "HEAD":  # who only looks where a link leads, such as a mail program, does not use it up
            return Response()
        try:
            cookie = self._key.enter(request.query_params.get("key", ""), request.scope) if self._key else None
        except UserUnknown:
            why = "the kernel does not tell which user of this machine opens this link, and its cookie would be good for others, too"
            hint = "serve a socket instead: `poolferry web --socket PATH`, with ssh -L; or let poolferry read /proc/net/tcp"
            return HTMLResponse(self._pages.failure(403, why, hint), 403)
        if cookie is None:
            why = "this link is not valid, or it was used already; start `poolferry web` again for another one"
            return HTMLResponse(self._pages.failure(403, why), 403)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", path="/")
        return answer

    def _failures(self) -> dict[int | type[Exception], Callable[..., Response]]:
        pages = self._pages

        def missing(_: Request, error: Exception) -> Response:
            why = str(error) if isinstance(error, NoSuchPage) else "there is no such page"
            return HTMLResponse(pages.failure(404, why), 404)

        def unreadable(_: Request, error: Exception) -> Response:
            why, hint = (error.why, error.hint) if isinstance(error, OrchestratorError) else (str(error), "")
            return HTMLResponse(pages.failure(503, why, hint), 503)

        def only_read(_: Request, __: Exception) -> Response:
            why = "this page only shows; what can be asked for has a button"
            return HTMLResponse(pages.failure(405, why), 405)

        def broken(_: Request, error: Exception) -> Response:
            why = f"this is a mistake in poolferry: {type(error).__name__}; the command line shows the same values"
            return HTMLResponse(pages.failure(500, why), 500)

        return {
            500: broken,
            404: missing,
            405: only_read,
            NoSuchPage: missing,
            OrchestratorError: unreadable,
            WrongRequest: missing,
        }

    def _refused(self, refusal: GuardRefusal) -> bytes:
        return self._pages.failure(refusal.status, refusal.why).encode()


def _page(make: Callable[[Request], str]) -> Callable[[Request], Response]:
    """Return the answer with a page; it is made in a thread."""

    def answer(request: Request) -> Response:
        return _packed(request, make(request).encode())

    return answer


def _packed(request: Request, page: bytes) -> Response:
    """Return the answer with a page, packed where the browser takes that: 300 jobs are 270 kB, and 10 kB when packed.

    Why not one that a query asked for: its length would tell who may listen how near words of a foreign link come to the form's token.
    """
    takes = [each.partition(";")[0].strip() for each in request.headers.get("accept-encoding", "").lower().split(",")]
    if "gzip" not in takes or request.url.query or len(page) < _LEAST_PACKED:
        return HTMLResponse(page)
    return HTMLResponse(gzip.compress(page, 1), headers={"Content-Encoding": "gzip", "Vary": "Accept-Encoding"})


def _this_month() -> tuple[int, int]:
    today = compose.now().astimezone()
    return today.year, today.month


async def _after(first: bytes, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield all events of a stream of which one was read; it ends with this one."""
    try:
        yield first
        async for event in events:
            yield event
    finally:
        await events.aclose()


async def _form_body(request: Request) -> bytes | None:
    """Return the body of a form; None for one that is too long, too slow, or none of ours."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        return None
    body = b""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            async for piece in request.stream():
                body += piece
                if len(body) > LONGEST_FORM:
                    return None
    except TimeoutError:
        return None
    return body


def _path(text: str) -> bytes:
    """Return a path below a point as an address names it. Raises: NoSuchPage for what names none."""
    try:
        path = parse_name(text)
    except (ValueError, OverflowError):
        raise NoSuchPage("there is no such path") from None
    if any(part in (b"", b".", b"..") for part in path.split(b"/")) and path:
        raise NoSuchPage("there is no such path")
    return path


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        raise NoSuchPage("there is no such file")
    return Response(read_asset(name), media_type=ASSETS[name], headers={"Cache-Control": _KEPT})

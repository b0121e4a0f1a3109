"""`poolferry web`: the status page."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal

if TYPE_CHECKING:
    import socket

    from orchestrator.app.settings import Settings
    from orchestrator.web.fleet_pages import FleetPages
    from orchestrator.web.pages import Pages

_SOCKET = "/run/poolferry-web.sock"  # not in /run/poolferry, which goes with the daemon
_DEMO = "127.0.0.1:9743"


@click.command(
    "web",
    cls=CliCommand,
    examples=(
        ("web --demo", "look at it, with made-up years of history"),
        ("web", f"serve it on {_SOCKET}; then, elsewhere: ssh -L 9743:{_SOCKET} HOST, and open http://localhost:9743"),
        ("web --listen 127.0.0.1:9743", "serve it on this machine alone; opened by the link that is printed"),
    ),
    section="every day",
    short_help="The status page, for a browser.",
)
@click.option("--socket", "path", metavar="PATH", help=f"the socket's file, for its owner and group ({_SOCKET})")
@click.option(
    "--listen", metavar="ADDRESS", help="an address of this machine in place of a socket, such as 127.0.0.1:9743"
)
@click.option(
    "--host", "names", multiple=True, metavar="NAME", help="a name under which a reverse proxy serves it (repeatable)"
)
@click.option(
    "--proxy-user", "header", metavar="HEADER", help="the header in which a reverse proxy on the socket names who asks"
)
@click.option("--fleet", is_flag=True, help="with pages over all hosts, at the centre of a fleet")
@click.option("--demo", is_flag=True, help="show made-up years of history; nothing of yours is read")
@pass_terminal
def web(
    terminal: Terminal, *, path: str | None, listen: str | None, names: Sequence[str], header: str | None, demo: bool,
    fleet: bool,
) -> int:  # fmt: skip
    """Serve the status page until Ctrl-C: promises, runs, disks and pools, live. Its buttons ask the daemon; none destroys anything.

    Without --listen a socket is served, which systemd passes or which is made; who may open it may look. A TCP address is for
    who has the link that is printed once.
    """
    if path and listen:
        raise click.UsageError("--socket and --listen exclude each other")
    if fleet and demo:
        raise click.UsageError("--fleet and --demo exclude each other; make demo-fleet shows a fleet")
    if header is not None and (listen or (demo and not path)):
        raise click.UsageError(
            "--proxy-user counts on the socket alone: whoever may open a TCP address could name anybody there"
        )
    from orchestrator.web.libraries import require_libraries

    require_libraries()
    from orchestrator.app.cached_settings import CachedSettings
    from orchestrator.app.control import DaemonControl
    from orchestrator.web.pages import Pages

    if not demo:
        settings = CachedSettings(config=terminal.config, state=terminal.state)
        pages = Pages(settings, DaemonControl(settings), fleet=fleet)
        return _serve(
            terminal, pages, path, listen, names, header, over_all=_fleet_pages(pages, settings) if fleet else None
        )
    from orchestrator.app.demo import DemoControl, demonstration

    terminal.say("making up two years of history …")
    with demonstration() as settings:
        return _serve(
            terminal,
            Pages(settings, DemoControl(settings), demo=True),
            path,
            listen or (None if path else _DEMO),
            names,
            header,
        )


def _fleet_pages(pages: "Pages", settings: "Settings") -> "FleetPages":
    """Return the pages over all hosts, of the declared centre. Raises: WrongRequest when none is declared."""
    from orchestrator.app.fleet_members import declared_fleet
    from orchestrator.web.fleet_pages import FleetPages

    return FleetPages(pages, settings, declared_fleet(settings).centre)


def _serve(
    terminal: Terminal, pages: "Pages", path: str | None, listen: str | None, names: Sequence[str], header: str | None = None,
    over_all: "FleetPages | None" = None,
) -> int:  # fmt: skip
    from orchestrator.web.guard import EntryKey, ProxyUser
    from orchestrator.web.server import serve
    from orchestrator.web.site import Site

    key = EntryKey() if listen else None
    proxy_user = ProxyUser(header) if header is not None else None
    with _listen(terminal, path, listen) as (listening, where):
        if (
            where
        ):  # a socket of our own, which nobody knows yet; whoever opened systemd's waits for one page, perhaps another
            pages.warm_front()
        if key:
            terminal.say(f"open http://{where}/enter?key={key.link} (good once); Ctrl-C ends it")
        elif where:
            terminal.say(f"serving {where}; on the machine with the browser: ssh -L 9743:{where} {os.uname().nodename}")
            terminal.say("then open http://localhost:9743; Ctrl-C ends it")
        serve(Site(pages, names=tuple(names), key=key, proxy_user=proxy_user, fleet=over_all), listening)
    return 0


@contextlib.contextmanager
def _listen(terminal: Terminal, path: str | None, listen: str | None) -> "Iterator[tuple[socket.socket, str]]":
    """Yield the socket, and its address, or its file where that is ours: it goes afterwards. Raises: OrchestratorError."""
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.web import server

    passed = None if path or listen else server.passed_socket()
    where = "" if passed or listen else path or _usual_socket(terminal)
    try:
        listening = passed or (server.open_tcp_socket(listen) if listen else server.open_unix_socket(where))
    except OSError as error:
        other = "--listen 127.0.0.1:9744 takes another address" if listen else "--socket PATH takes another file"
        raise OrchestratorError(f"cannot listen on {listen or where}: {error.strerror or error}", hint=other) from error
    try:
        with listening:
            yield listening, server.tcp_address(listening) if listen else where
    finally:
        if where:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(where)


def _usual_socket(terminal: Terminal) -> str:
    """Return the path of the socket where none is named."""
    if os.geteuid() == 0:
        return _SOCKET
    os.makedirs(terminal.where.state, mode=0o700, exist_ok=True)
    return os.path.join(terminal.where.state, "web.sock")


COMMAND = web

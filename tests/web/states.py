"""Three states of a machine, each as a site that is served here: the first day, an ordinary one after years, and the worst.

The clock stands still in all, so that what the pages say can be kept as text.
"""

import asyncio
import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator import compose
from orchestrator.app.cached_settings import CachedSettings
from orchestrator.app.control import DaemonControl
from orchestrator.app.demo import DemoControl, write_demonstration
from orchestrator.domain.act import ActVerb
from orchestrator.domain.place import USED
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.rotation import DiskState
from orchestrator.domain.run import Outcome
from orchestrator.domain.source_identity import SOURCE_STATE
from orchestrator.domain.source_state import SourceState, SourceStateRecord
from orchestrator.history import views
from orchestrator.history.store import History, open_history
from orchestrator.web.pages import ActControl, Pages
from orchestrator.web.server import SiteServer
from orchestrator.web.site import Site
from tests.ferry import Ferry
from tests.history.records import begin, reading, report

NOW = datetime(2026, 11, 24, 9, 30, tzinfo=UTC)
STATES = ("first-day", "ordinary", "worst-day")


@contextmanager
def standing_clock() -> Iterator[None]:
    """Let it be one moment, in UTC and on one machine, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compose, "now", lambda: NOW)
        patch.setattr(os, "uname", lambda: SimpleNamespace(nodename="this-host"))
        patch.setenv("TZ", "UTC")
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()


def made_state(name: str, folder: Path) -> Site:
    """Write a machine in one of the states; return its pages."""
    settings, control, demo = made_machine(name, folder)
    return Site(Pages(settings, control, demo=demo))


def made_machine(name: str, folder: Path) -> tuple[CachedSettings, ActControl, bool]:
    """Write a machine in one of the states; return its settings, its daemon, and whether it is a demonstration."""
    make: dict[str, Callable[[Path], tuple[CachedSettings, ActControl, bool]]] = {
        "first-day": _first_day, "ordinary": _ordinary, "worst-day": _worst_day,
    }  # fmt: skip
    return make[name](folder)


@contextmanager
def served(site: Site) -> Iterator[str]:
    """Serve a site in a thread; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = SiteServer(site)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), name="site")
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
            server.force_exit = True  # a client that takes nothing of its answer
            thread.join()


def _first_day(folder: Path) -> tuple[CachedSettings, ActControl, bool]:
    """Three jobs that were just written: of a place, of a set without a disk, of a pool."""
    ferry = Ferry(folder)
    ferry.job()
    targets = ferry.config / "targets.toml"
    targets.write_text(targets.read_text() + "[set.offsite]\n")
    (ferry.config / "jobs" / "archive.toml").write_text(
        'engine = "rsync"\nsource = "/srv/archive"\ntarget = "offsite"\n'
    )
    (ferry.config / "jobs" / "pool-tank.toml").write_text('engine = "pool"\nsource = "tank"\nevery = "6h"\n')
    settings = CachedSettings(config=str(ferry.config), state=str(ferry.state))
    return settings, DemoControl(settings), False


def _ordinary(folder: Path) -> tuple[CachedSettings, ActControl, bool]:
    settings = CachedSettings(config=f"{folder}/etc", state=f"{folder}/state")
    write_demonstration(settings, NOW)
    with compose.open_history(settings.where) as history:
        _acts(history)
    return settings, DemoControl(settings), True


def _worst_day(folder: Path) -> tuple[CachedSettings, ActControl, bool]:
    """Years that ended forty days ago: all is late; and since then nothing went well, and no daemon runs."""
    settings = CachedSettings(config=f"{folder}/etc", state=f"{folder}/state")
    write_demonstration(settings, NOW - timedelta(days=40))
    with compose.open_history(settings.where) as history, history.together():
        _bad_runs(history)
        _bad_disks(history)
        _acts(history)
    return settings, DaemonControl(settings), True


_LONG = "/srv/" + "a-folder-with-a-long-name/" * 6 + "<b>&\u202egpj.exe"
_BAD: tuple[tuple[str, Outcome, str, str], ...] = (
    ("photos", Outcome.REFUSED, "/srv/photos holds 3 files, and its last point 184,220: nothing was touched", "poolferry run photos --accept emptied"),
    ("documents", Outcome.FAILED, "nas: permission denied (publickey)", "ssh-copy-id ferry@nas"),
    ("mail", Outcome.FAILED, "nas2: no space left on device", "poolferry plan mail"),
    ("databases", Outcome.FAILED, f"cannot read {_LONG}: input/output error", ""),
    ("home", Outcome.INCOMPLETE, "12 files could not be read", "poolferry show last"),
    ("www", Outcome.REFUSED, "clocks differ by 3 h 12 min", "timedatectl"),
    ("archive", Outcome.FAILED, "disk blue was pulled out; nothing older on it was damaged", "plug it in again"),
    ("pool-tank", Outcome.FAILED, "tank is DEGRADED, 97% full: 1 of 4 disks is FAULTED; the last scrub ended 61 d ago", "zpool status -v tank"),
    ("pool-vault", Outcome.FAILED, "vault is SUSPENDED: it does not answer", "zpool clear vault"),
)  # fmt: skip


def _bad_runs(history: History) -> None:
    history.due_runs.resume("www")
    for ago in (3, 2, 1):
        for number, (job, outcome, why, hint) in enumerate(_BAD):
            at = NOW - timedelta(days=ago, hours=number)
            run = begin(history, job, now=at)
            history.attempt_begun(run, 1, at)
            step = history.step_begun(
                run, 1, 1, action=f"copy {_LONG}", why=_LONG, worker="main", commands=(f"rsync -aHAX {_LONG} /backup",), expected=1 << 40, now=at
            )  # fmt: skip
            history.step_ended(step, now=at, moved=0, confirmed=False, exits=(23,), last_output=(why,), error=why)
            history.attempt_ended(run, 1, at, why, None)
            history.ended(run, report(run, job, outcome, why=why, hint=hint, warnings=(why,)), at)
    begin(history, "music", now=NOW - timedelta(hours=2))  # its process is gone
    run = begin(history, "old-site", now=NOW - timedelta(days=90), source="/srv/old-site", target="/backup/old-site")
    history.ended(run, report(run, "old-site"), NOW - timedelta(days=90))
    history.remember("old-site", USED, "/backup/old-site")  # and no file says that it goes on
    gone = SourceStateRecord(
        state=SourceState.GONE, since=NOW - timedelta(days=1), why="/srv/www is not there; its last point holds 12,408 files",
        hint="`poolferry restore run www --to /srv/www` brings it back",
    )  # fmt: skip
    history.remember("www", SOURCE_STATE, str(gone))
    rotten = Finding(
        path=b"2019/evensong.flac", verdict=Verdict.ROTTEN, detail="another digest, the same size and time"
    )
    for job, place in (("photos", "backup-photos"), ("documents", "nas-documents"), ("music", "backup-music")):
        newest = max(history.point_names(job, place))
        history.verified(job, place, newest, reading=reading(rotten), now=NOW - timedelta(hours=9), scope="whole")


def _bad_disks(history: History) -> None:
    visit = history.disks.begin_visit("blue", NOW - timedelta(hours=3))
    why = "disk blue was pulled out; nothing older on it was damaged"
    history.disks.visit_ended(visit, jobs=("archive",), outcome="pulled-out", why=why, released=None, safe=False)
    history.disks.is_at("blue", "in transit", note="", now=NOW - timedelta(hours=2))
    history.disks.visit_health(visit, "the disk itself says that it fails: 212 sectors were replaced")
    history.disks.stands("green", DiskState("lost"))
    visit = history.disks.begin_visit("red", NOW - timedelta(hours=5))
    history.disks.visit_ended(
        visit, jobs=(), outcome="done", why="no job had to run", released=NOW - timedelta(hours=4), safe=True,
        beside="/dev/sdz1 is mounted at /srv/mirror",
    )  # fmt: skip
    history.disks.is_at("red", "here", note="", now=NOW - timedelta(hours=4))


def _acts(history: History) -> None:
    for verb, subject, about, well, said in (
        (ActVerb.VERIFY, "photos", "", True, "all of it is sound"), (ActVerb.EJECT, "blue", "", False, "disk blue is not here"),
        (ActVerb.RESTORE, "photos", "2026/03 of point 2026-11-23T013000Z", None, ""),
    ):  # fmt: skip
        act = history.acts.asked(
            verb, subject, about, "ann (by proxy), through poolferry-web (uid 61184)", NOW - timedelta(minutes=4)
        )
        if well is not None:
            history.acts.ended(act, well=well, said=said, now=NOW - timedelta(minutes=3))


UNREADABLE = ("locked", "gone with its disk", "overwritten", "of a newer poolferry")


@contextmanager
def unreadable(kind: str, folder: Path) -> Iterator[Site]:
    """Write a machine with one job, whose history cannot be read; its pages. A lock is waited for a moment only."""
    folder.mkdir()
    ferry = Ferry(folder)
    ferry.job()
    file = ferry.state / "history.sqlite"
    open_history(str(file)).close()
    if kind == "overwritten":
        file.write_bytes(b"no database" * 100)
    elif kind == "gone with its disk":
        ferry.state.rename(folder / "elsewhere")
        ferry.state.write_text("no folder")
    settings = CachedSettings(config=str(ferry.config), state=str(ferry.state))
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(sqlite3.connect(":memory:" if kind.startswith("gone") else file)) as held,
    ):
        if kind == "locked":
            held.execute("BEGIN EXCLUSIVE")
            patch.setattr(views, "open_reader", partial(views.open_reader, wait_s=0.05))
        elif kind == "of a newer poolferry":
            held.execute("PRAGMA user_version = 999")
        yield Site(Pages(settings, DemoControl(settings)))


def three_hundred_sources(folder: Path) -> Ferry:
    """Write a machine with 300 jobs that went well for weeks."""
    ferry = Ferry(folder)
    places = "".join(f'[place.p{n}]\npath = "/backup/{n}"\n' for n in range(300))
    (ferry.config / "targets.toml").write_text(places)
    for n in range(300):
        text = f'engine = "rsync"\nsource = "/srv/{n}"\ntarget = "p{n}"\ndaily = "02:30"\nlate-after = "26h"\n'
        (ferry.config / "jobs" / f"j{n}.toml").write_text(text)
    now = datetime.now(UTC)
    with open_history(str(ferry.state / "history.sqlite")) as history, history.together():
        for n in range(300):
            for ago in range(20, 0, -1):
                at = now - timedelta(days=ago)
                run = begin(history, f"j{n}", now=at)
                history.ended(run, report(run, f"j{n}"), at)
            history.point_made(f"j{n}", f"p{n}", "2026-11-24T023000Z", run, entries=1, bytes=1, taken=at, now=at)
            history.point_verified(f"j{n}", f"p{n}", "2026-11-24T023000Z", run, at)
    return ferry


LONG_NAMES = (
    "a" * 255, "\u05ea\u05de\u05d5\u05e0\u05d5\u05ea \u05de\u05e9\u05e4\u05d7\u05d4 " * 5, "\u0645\u062c\u0644\u062f/" * 40,
    "Vertragsunterlagen der Hausverwaltung " * 6,
)  # fmt: skip
LONG_JOB = "j" * 90


def long_names(folder: Path) -> tuple[Site, list[str]]:
    """Write a machine on which each name is as long as it may be, or runs from right to left; return its pages and their addresses."""
    ferry = Ferry(folder)
    source = ferry.job(LONG_JOB)
    for name in LONG_NAMES:
        (source / name.strip()).mkdir(parents=True, exist_ok=True)
    (source / LONG_NAMES[0] / "b.txt").write_text("b")
    assert ferry.run("run", LONG_JOB).code == 0
    settings = CachedSettings(config=str(ferry.config), state=str(ferry.state))
    now = datetime.now(UTC)
    with compose.open_history(settings.where) as history:
        for name in LONG_NAMES:
            run = begin(history, LONG_JOB, now=now, source=f"/srv/{name}", target=f"/backup/{name}", why=name)
            history.said(run, now, "warning", name)
            ended = report(
                run, LONG_JOB, Outcome.FAILED, why=f"cannot read {name}", hint=name, warnings=(name,), evidence=(name,)
            )
            history.ended(run, ended, now)
            act = history.acts.asked(ActVerb.VERIFY, LONG_JOB, name, f"{'w' * 64} (by proxy)", now)
            history.acts.ended(act, well=False, said=name, now=now)
        seen = {
            "datasets": LONG_NAMES,
            "folders": [name.encode().hex() for name in LONG_NAMES],
            "trouble": LONG_NAMES[0],
        }
        history.remember("", "uncovered", json.dumps({**seen, "at": now.isoformat()}))
        (point,) = history.point_names(LONG_JOB, f"{LONG_JOB}-copies")
    inside = f"/points/{LONG_JOB}/{point}"
    pages = ["/", f"/jobs/{LONG_JOB}", "/runs", "/runs/2", "/acts", "/acts/1", "/reading", "/report", inside]
    pages += [
        f"{inside}?take={LONG_NAMES[0]}",
        f"{inside}/{LONG_NAMES[0]}",
        f"/versions/{LONG_JOB}/{LONG_NAMES[0]}/b.txt",
    ]
    return Site(Pages(settings, DemoControl(settings))), pages

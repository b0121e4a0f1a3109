"""Made-up years of history, for a look at the pages: written as runs write it, by the same code, into a folder that goes afterwards.

The same each time, but for the day on which they end. One run goes on while the demonstration lives, and is followed by another.
"""

import contextlib
import json
import os
import random
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.cached_settings import CachedSettings
from orchestrator.app.point_index import PointIndex
from orchestrator.app.settings import Settings
from orchestrator.domain.command_line import quoted
from orchestrator.domain.drill import DrillResult
from orchestrator.domain.events import TransferProgress
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.names import point_name
from orchestrator.domain.point import Finding, Verdict, VerificationResult
from orchestrator.domain.rotation import DiskRecord, DiskState
from orchestrator.domain.run import Outcome, RunReport, RunType
from orchestrator.domain.units import show_count
from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import ManifestHeader, write_manifest

if TYPE_CHECKING:
    from orchestrator.app.path_versions import PathVersions
    from orchestrator.domain.act import ActAnswer, ActRequest
    from orchestrator.history.store import History

_DAYS = 730
_GIB, _MIB = 1 << 30, 1 << 20
_DETAILED = 3  # runs of each job that still have steps and commands


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpJob:
    """A job of the demonstration. `at`: hour of its run, in UTC; `stops`: days ago since when its copies are no newer."""

    name: str
    engine: str
    source: str
    place: str
    where: str
    at: int
    size: int
    entries: int
    late_after: str = "26h"
    days: int = _DAYS
    stops: int = 0
    outcome: Outcome = Outcome.DONE
    why: str = ""
    hint: str = ""
    more: str = ""


MadeUpEvent = tuple[datetime, Callable[[], None]]
_AWAY = "nas: the host does not answer (ssh: connect to host nas port 22: No route to host)"
JOBS = (
    MadeUpJob(
        name="photos", engine="rsync", source="/srv/photos", place="backup-photos", where='path = "/backup/photos"', at=1,
        size=412 * _GIB, entries=184_220, more='[drill]\nevery = "30d"\n',
    ),
    MadeUpJob(
        name="documents", engine="rsync", source="/srv/documents", place="nas-documents",
        where='path = "ssh://ferry@nas/backup/documents"', at=2, size=38 * _GIB, entries=96_310, more='[drill]\nevery = "30d"\n',
    ),
    MadeUpJob(
        name="mail", engine="rsync", source="/var/mail", place="nas-mail", where='path = "ssh://ferry@nas2/backup/mail"', at=2,
        size=21 * _GIB, entries=611_042, stops=3, outcome=Outcome.FAILED, why=_AWAY.replace("nas", "nas2"),
        hint="ping nas2; then poolferry run mail",
    ),
    MadeUpJob(
        name="music", engine="rsync", source="/srv/music", place="backup-music", where='path = "/backup/music"', at=3,
        size=260 * _GIB, entries=41_873,
    ),
    MadeUpJob(
        name="databases", engine="zfs", source="tank/db", place="vault", where='dataset = "vault/replicas"', at=0, size=64 * _GIB,
        entries=0,
    ),
    MadeUpJob(
        name="home", engine="zfs", source="tank/home", place="vault-nas", where='dataset = "ssh://ferry@nas/vault/home"', at=4,
        size=530 * _GIB, entries=0, stops=0, more='[drill]\nevery = "60d"\n',
    ),
    MadeUpJob(
        name="www", engine="rsync", source="/srv/www", place="backup-www", where='path = "/backup/www"', at=3, size=6 * _GIB,
        entries=58_144, days=300,
    ),
    MadeUpJob(
        name="cameras", engine="rsync", source="/srv/cameras", place="backup-cameras", where='path = "/backup/cameras"', at=5,
        size=90 * _GIB, entries=12_000, days=0,
    ),
)  # fmt: skip
DISK_JOB = "archive"
DISKS = (("red", 4, "the office"), ("blue", 41, "the bank"), ("green", 0, "here"))
POOLS = (("tank", 0.58, 0.79, "3 d 2 h"), ("vault", 0.31, 0.44, "11 d"))


@contextlib.contextmanager
def demonstration() -> Iterator[CachedSettings]:
    """Write the history into a new folder, and let one run go on, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="poolferry-demo-") as folder:
        settings = CachedSettings(config=f"{folder}/etc", state=f"{folder}/state")
        write_demonstration(settings, compose.now())
        ended = threading.Event()
        carrier = threading.Thread(target=_carry_on, args=(settings, ended), name="demo", daemon=True)
        carrier.start()
        try:
            yield settings
        finally:
            ended.set()
            carrier.join()


class DemoControl:
    """A daemon of the demonstration: what is only recorded is done, and nothing is started."""

    def __init__(self, settings: CachedSettings) -> None:
        self._settings = settings

    def trouble(self) -> None:
        """Return None: it can always be asked."""

    def ask(self, request: "ActRequest") -> "ActAnswer":
        """Do what is only recorded. Raises: HistoryError."""
        from orchestrator.app.acts import ActContext, ActService
        from orchestrator.app.settings import unheard

        context = ActContext(where=self._settings.where, configuration=self._settings.configuration())
        with compose.open_history(self._settings.where) as history:
            return ActService(history, lambda: context, unheard, processes=False).ask(request, "a visitor")


_UNCOVERED = {
    "datasets": ["tank/scratch", "tank/vm"], "folders": [path.encode().hex() for path in ("/srv/downloads", "/var/cache")], "trouble": "",
}  # fmt: skip
_FOLDERS = ("2019", "2022", "2024", "2025", "2026", "albums", "raw", "scans")
_KINDS = (("jpg", 4), ("jpg", 5), ("raw", 28), ("mov", 300), ("txt", 0))


def index_made_up(settings: Settings) -> PointIndex:
    """Return the contents of every made-up point: some thousand files, the same in each."""
    path = f"{settings.where.state}/made-up.manifest.gz"
    if not os.path.exists(path):
        chance = random.Random(1)  # noqa: S311
        header = ManifestHeader(
            job="photos",
            source="/srv/photos",
            point="made-up",
            digest="xxh128",
            created=datetime(2026, 1, 1, tzinfo=UTC),
        )
        write_manifest(path, header, sorted(_made_up_entries(chance), key=lambda entry: entry.path + b"//"))
    return PointIndex(path)


def versions_made_up(index: PointIndex, points: Sequence[str], path: bytes) -> "PathVersions":
    """Return a made-up file in all points: one that was changed twice, and is not in the oldest ones."""
    from orchestrator.app.path_versions import read_versions
    from orchestrator.domain.point_contents import ContentPoint, EntryInPoint

    page = index.folder(path.rpartition(b"/")[0], 0, 100_000)
    now = next((each for each in page.entries if each.path == path), None) if page else None
    found = []
    for at, name in enumerate(points):
        age = at * 4 // max(len(points), 1)
        then = now and replace(
            now,
            mtime_ns=now.mtime_ns - age * 10**15,
            digest=now.digest[:8] + str(age) + now.digest[9:],
            size=now.size - 999 * age,
        )
        found.append(EntryInPoint(point=ContentPoint(name=name), entry=then if age < 3 else None))
    return read_versions(found)


def _made_up_entries(chance: random.Random) -> Iterator[ManifestEntry]:
    at = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    folder = ManifestEntry(b"", "d", 0, at, 0o755, 1000, 1000, 2, 1)
    yield folder
    for name in _FOLDERS:
        yield folder._replace(path=name.encode())
        for month in range(1, 13):
            yield folder._replace(path=f"{name}/{month:02}".encode())
            for number in range(chance.randint(4, 60)):
                kind, size = chance.choice(_KINDS)
                path = f"{name}/{month:02}/dsc-{month:02}{number:04}.{kind}".encode()
                digest = f"xxh128:{chance.getrandbits(128):032x}"
                yield ManifestEntry(
                    path, "f", int(size * _MIB * chance.uniform(0.7, 1.4)) + 900, at - chance.randrange(10**17), 0o644, 1000, 1000, 1,
                    number, b"", digest,
                )  # fmt: skip


def write_demonstration(settings: CachedSettings, now: datetime) -> None:
    """Write configuration and history as of an instant."""
    _write_configuration(settings.where.config)
    with compose.open_history(settings.where) as history, history.together():
        history.remember("", "uncovered", json.dumps(_UNCOVERED | {"at": now.isoformat()}))
        events = [*_disk_visits(history, now)]
        for number, job in enumerate(JOBS):
            events += _Past(history, job, random.Random(number), now).events()  # noqa: S311
        for number, pool in enumerate(POOLS):
            events += _pool_looks(history, pool, random.Random(100 + number), now)  # noqa: S311
        for _, write in sorted(events, key=lambda event: event[0]):
            write()
        _write_disks(history, now)
        _write_troubles(history, now)
        who = compose.process_identity()
        history.due_runs.begin_beat(boot=who.boot, pid=who.pid, now=now)
        history.due_runs.pause(
            "www", now=now - timedelta(days=2), until=now + timedelta(days=5), why="the site is rebuilt"
        )


def _write_configuration(folder: str) -> None:
    os.makedirs(f"{folder}/jobs", mode=0o700)
    places = [f"[place.{job.place}]\n{job.where}\n" for job in JOBS]
    places.append('[set.offsite]\nfresh-within = "7d"\neach-within = "30d"\n')
    places += [
        f'[disk.{name}]\nset = "offsite"\ncontent = "ext4"\nidentity = "{_identity(name)}"\nnote = "{name} sticker"\n'
        for name, _, _ in DISKS
    ]
    files = {"targets.toml": "\n".join(places)}
    for job in JOBS:
        files[f"jobs/{job.name}.toml"] = (
            f'engine = "{job.engine}"\nsource = "{job.source}"\ntarget = "{job.place}"\ndaily = "{job.at:02}:30"\n'
            f'late-after = "{job.late_after}"\n{job.more}[keep]\ndaily = 30\nweekly = 26\nmonthly = 24\n'
        )
    files[f"jobs/{DISK_JOB}.toml"] = (
        'engine = "rsync"\nsource = "/srv/archive"\ntarget = "offsite"\non = "attach"\nlate-after = "10d"\n'
    )
    for name, *_ in POOLS:
        files[f"jobs/pool-{name}.toml"] = (
            f'engine = "pool"\nsource = "{name}"\nevery = "6h"\nlate-after = "26h"\n[pool]\nscrub-every = "30d"\n'
        )
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def _identity(name: str) -> str:
    return f"{random.Random(name).getrandbits(32):08x}-0000-4000-8000-{random.Random(name).getrandbits(48):012x}"  # noqa: S311


def _begin(history: "History", job: str, engine: str, ends: tuple[str, str], at: datetime, why: str) -> int:
    who = compose.process_identity()
    return history.begin(
        job=job, engine=engine, source=ends[0], target=ends[1], now=at, pid=who.pid, process_started=who.started, boot=who.boot,
        host="ferry", why=why,
    )  # fmt: skip


def _report(run: int, job: str, outcome: Outcome, why: str, **more: object) -> RunReport:
    usual: dict[str, object] = {
        "hint": "", "moved_bytes": 0, "took_s": 2.0, "resumed": False, "attempts": 1, "steps": (), "points": (), "warnings": (),
    }  # fmt: skip
    return RunReport(run=run, job=job, outcome=outcome, why=why, **{**usual, **more})  # type: ignore[arg-type]


class _Past:
    """The past of one job: its nights, its points that [keep] let stand, and its restore tests."""

    def __init__(self, history: "History", job: MadeUpJob, chance: random.Random, now: datetime) -> None:
        self._history, self._job, self._chance, self._now = history, job, chance, now
        self._ends = (job.source, job.where.split('"')[1])

    def events(self) -> Iterator[MadeUpEvent]:
        """Yield all of it."""
        first = self._now.replace(hour=self._job.at, minute=30, second=0, microsecond=0)
        nights = [first - timedelta(days=ago) for ago in range(self._job.days, -1, -1)]
        nights = [night for night in nights if night < self._now - timedelta(hours=1)] if self._job.days else []
        kept = _kept(nights)
        for index, night in enumerate(nights):
            ago = len(nights) - 1 - index
            bad = ago < self._job.stops
            yield night, partial(self._night, night, keep=night in kept, bad=bad, detailed=ago < _DETAILED, ago=ago)
        for months in range(12, 0, -1) if "[drill]" in self._job.more else ():
            at = self._now - timedelta(days=months * 29 - 20, hours=5)
            yield at, partial(self._drill, at)

    def _night(self, night: datetime, *, keep: bool, bad: bool, detailed: bool, ago: int) -> None:
        job, chance = self._job, self._chance
        run = _begin(self._history, job.name, job.engine, self._ends, night, f"due: {job.at:02}:30")
        grown = 1 - 0.45 * ago / _DAYS
        moved = int(job.size * grown * chance.uniform(0.0004, 0.006) * (6 if chance.random() < 0.04 else 1))
        took = moved / (chance.uniform(60, 110) * _MIB) + chance.uniform(20, 90)
        outcome, why, hint = Outcome.DONE, "", ""
        if bad:
            outcome, why, hint, moved, took = job.outcome, job.why, job.hint, 0, 31.0
        elif chance.random() < 0.012 and ago > 5:
            outcome, why, moved, took = Outcome.FAILED, _AWAY if "ssh" in job.where else "the target is full", 0, 14.0
        name = point_name(night)
        well = outcome is Outcome.DONE
        if detailed:
            self._details(run, night, moved, took, name, why)
        made = why or f"made {name}"
        end = night + timedelta(seconds=took)
        points = (name,) if well else ()
        self._history.ended(
            run, _report(run, job.name, outcome, made, hint=hint, moved_bytes=moved, took_s=took, points=points), end
        )
        if well and keep:
            self._point(run, name, night, end, grown, ago)

    def _point(self, run: int, name: str, night: datetime, end: datetime, grown: float, ago: int) -> None:
        job, history = self._job, self._history
        entries = int(job.entries * grown) or None
        history.point_made(
            job.name, job.place, name, run, entries=entries, bytes=int(job.size * grown), taken=night, now=end
        )
        if self._chance.random() > 0.02 or ago < 40:
            history.point_verified(job.name, job.place, name, run, end)
        if self._chance.random() < (0.2 if ago < 30 else 0.75):
            sound = VerificationResult(
                entries=entries or 900, files_read=entries or 900, bytes_read=int(job.size * grown), took_s=3600.0, counts=(), findings=()
            )  # fmt: skip
            history.verified(
                job.name, job.place, name, reading=sound, now=end + timedelta(days=min(ago, 9) / 2), scope="whole"
            )

    def _details(self, run: int, night: datetime, moved: int, took: float, name: str, error: str) -> None:
        history, job = self._history, self._job
        half = night + timedelta(seconds=took * 0.8)
        steps = _steps(job, name)
        history.attempt_begun(run, 1, night)
        history.planned(run, 1, _plan(job, name))
        for index, (action, why, line) in enumerate(steps[:1] if error else steps):
            begun, ended = (night, half) if not index else (half, night + timedelta(seconds=took))
            step = history.step_begun(
                run,
                1,
                index + 1,
                action=action,
                why=why,
                worker="main",
                commands=(line,),
                expected=moved if not index else None,
                now=begun,
            )
            said = ("ssh: connect to host nas2 port 22: No route to host",) if error else ()
            history.step_ended(
                step, now=ended, moved=moved if not index and not error else None, confirmed=not error, exits=(255 if error else 0,),
                last_output=said, error=error or None,
            )  # fmt: skip
        history.attempt_ended(run, 1, night + timedelta(seconds=took), error or None, None)
        history.said(
            run, night, *(("warning", "the attempt failed") if error else ("info", f"copies what changed to {name}"))
        )

    def _drill(self, at: datetime) -> None:
        job = self._job
        run = self._history.begin(
            job=job.name, engine=job.engine, source=self._ends[0], target=self._ends[1], now=at, pid=1, process_started=1, boot="-",
            host="ferry", why="due: drill", kind=RunType.DRILL,
        )  # fmt: skip
        files = 40
        drilled = DrillResult(
            place=job.place, point=point_name(at), outcome=Outcome.DONE, why="", whole=False, self_test=False, seed=7, files=files,
            bytes=files * 3 * _MIB, of_files=job.entries or 81_000, of_bytes=job.size, restore_s=2.4,
        )  # fmt: skip
        end = at + timedelta(seconds=9)
        self._history.ended(
            run,
            _report(run, job.name, Outcome.DONE, f"restored {show_count(files, 'file')}, and none differs", took_s=9.0),
            end,
        )
        self._history.drills.keep(run, job.name, drilled, end)


def _kept(nights: list[datetime]) -> set[datetime]:
    """Return the nights whose points stand: 30 days, 26 weeks and 24 months."""
    kept = set(nights[-30:])
    for number, label in ((26, "%G-%V"), (24, "%Y-%m")):
        newest = {night.strftime(label): night for night in nights}
        kept |= set(list(newest.values())[-number:])
    return kept


def _steps(job: MadeUpJob, name: str) -> tuple[tuple[str, str, str], ...]:
    where = job.where.split('"')[1]
    if job.engine == "zfs":
        send = f"zfs send -w -i @{name[:10]} {job.source}@{name} | mbuffer -q -m 128M | zfs receive -s -u {where}"
        return (
            (
                f"send {job.source}@{name} to {where}, incremental",
                "the newest snapshot that both sides hold is a day older",
                send,
            ),
            (
                f"hold {job.source}@{name}",
                "the next increment starts from it",
                f"zfs hold poolferry {quoted(f'{job.source}@{name}')}",
            ),
        )
    return (
        (f"copy {job.source} to {where}/work", "184 files are new or changed", f"rsync -aHAXX --link-dest=../points/latest {job.source}/ {where}/work/"),
        (f"publish {name}", "the tree is whole, and equals its manifest", f"publish.sh {where} {name}"),
    )  # fmt: skip


def _plan(job: MadeUpJob, name: str) -> str:
    stages = [[{"action": action, "why": why}] for action, why, _ in _steps(job, name)]
    return json.dumps(
        {"decision": "plan", "summary": f"copy what changed in {job.source}", "stages": stages, "warnings": []}
    )


def _write_disks(history: "History", now: datetime) -> None:
    for name, ago, place in DISKS:
        history.disks.is_at(name, place, note="", now=now - timedelta(days=ago))


def _disk_visits(history: "History", now: datetime) -> Iterator[MadeUpEvent]:
    for number, (name, ago, _) in enumerate(DISKS):
        history.disks.keep(
            DiskRecord(
                disk=name, name=name, set="offsite", identity=_identity(name), content="ext4", size=8_001_563_222_016,
                serial=f"DEMO{number}", model="Made-up 8 TB", wwn="", generation=25, written=25, enrolled=now - timedelta(days=_DAYS),
                standing=DiskState.ACTIVE,
            )
        )  # fmt: skip
        for visit in range(24, -1, -1):
            at = now - timedelta(days=ago + visit * 28, hours=3)
            yield at, partial(_visit, history, name, at)


def _visit(history: "History", name: str, at: datetime) -> None:
    end, label = at + timedelta(minutes=47), point_name(at)
    run = _begin(history, DISK_JOB, "rsync", ("/srv/archive", f"disk {name}"), at, f"disk {name} was plugged in")
    done = _report(run, DISK_JOB, Outcome.DONE, f"made {label}", moved_bytes=9 * _GIB, took_s=2820.0, points=(label,))
    history.ended(run, done, end)
    history.point_made(DISK_JOB, name, label, run, entries=402_118, bytes=1900 * _GIB, taken=at, now=end)
    history.point_verified(DISK_JOB, name, label, run, end)
    visit = history.disks.begin_visit(name, at)
    history.disks.visit_ended(visit, jobs=(DISK_JOB,), outcome="done", why="1 job ran", released=end, safe=True)
    history.disks.visit_health(visit, "")


def _pool_looks(
    history: "History", pool: tuple[str, float, float, str], chance: random.Random, now: datetime
) -> Iterator[MadeUpEvent]:
    name, first, last, scrub = pool
    for ago in range(_DAYS // 2, -1, -1):
        at = now - timedelta(days=ago, hours=2)
        full = last - (last - first) * ago / (_DAYS // 2) + chance.uniform(-0.008, 0.008)
        yield (
            at,
            partial(
                _look_at_pool, history, name, at, f"{name} is sound, {full:.0%} full; the last scrub ended {scrub} ago"
            ),
        )


def _look_at_pool(history: "History", name: str, at: datetime, why: str) -> None:
    job = f"pool-{name}"
    run = _begin(history, job, "pool", (name, name), at, "due: every 6h")
    history.ended(run, _report(run, job, Outcome.NOTHING, why, took_s=0.4), at + timedelta(seconds=1))
    history.point_current(job, job, name, run, at, whole=True)


def _write_troubles(history: "History", now: datetime) -> None:
    """Let one old point of the music be damaged: a reading found rot."""
    names = sorted(history.point_names("music", "backup-music"))
    rotten = Finding(
        path=b"choir/2019/evensong.flac", verdict=Verdict.ROTTEN, detail="another digest, the same size and time"
    )
    reading = VerificationResult(
        entries=39_112, files_read=39_000, bytes_read=251 * _GIB, took_s=3100.0, counts=((Verdict.ROTTEN, 1),), findings=(rotten,)
    )  # fmt: skip
    history.verified("music", "backup-music", names[-12], reading=reading, now=now - timedelta(hours=9), scope="whole")


def _carry_on(settings: CachedSettings, ended: threading.Event) -> None:
    """Let a run of the photos go on until it has moved its bytes, and begin another one after a while."""
    job, size = JOBS[0], 24 * _GIB
    while not ended.is_set():
        with compose.open_history(settings.where) as history:
            begun = compose.now()
            name = point_name(begun)
            run = _begin(history, job.name, job.engine, (job.source, "/backup/photos"), begun, "by hand")
            history.attempt_begun(run, 1, begun)
            history.planned(run, 1, _plan(job, name))
            (action, why, line), second = _steps(job, name)
            step = history.step_begun(
                run, 1, 1, action=action, why=why, worker="main", commands=(line,), expected=size, now=begun
            )
            if not _carry(settings, run, size, ended):
                return
            now = compose.now()
            history.step_ended(step, now=now, moved=size, confirmed=True, exits=(0,), last_output=(), error=None)
            step = history.step_begun(
                run, 1, 2, action=second[0], why=second[1], worker="main", commands=(second[2],), expected=None, now=now
            )
            history.step_ended(step, now=now, moved=None, confirmed=True, exits=(0,), last_output=(), error=None)
            history.attempt_ended(run, 1, now, None, None)
            took = (now - begun).total_seconds()
            history.ended(
                run,
                _report(run, job.name, Outcome.DONE, f"made {name}", moved_bytes=size, took_s=took, points=(name,)),
                now,
            )
            history.point_made(
                job.name, job.place, name, run, entries=job.entries, bytes=job.size, taken=begun, now=now
            )
            history.point_verified(job.name, job.place, name, run, now)
        ended.wait(45)


def _carry(settings: CachedSettings, run: int, size: int, ended: threading.Event) -> bool:
    """Report progress until all is moved; return False when the demonstration ends before."""
    note, done = compose.make_progress_note(settings.where.state, run, compose.monotonic()), 3 * _GIB
    chance = random.Random(run)  # noqa: S311
    note.step_begun()
    try:
        while done < size:
            note.moved(TransferProgress(done=done, expected=size))
            if ended.wait(1.0):
                return False
            done = min(size, done + int(chance.uniform(70, 110) * _MIB))
        return True
    finally:
        note.remove()

"""Measures a centre by simulation: HOSTS hosts, 20 jobs each, 30 nights. `make bench-fleet ARGS="--hosts 10000"`.

Rows are made as the sender makes them and stored by the real code, each host as its own role under row-level security, with a
connection of its own. Beside it, in the same minutes: a bare COPY of the same rows, with as many connections.
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import sqlite3
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue

import psycopg

from orchestrator.app.fleet_watch import watch_once
from orchestrator.app.settings import Settings
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.ledger import LedgerRow
from orchestrator.domain.permit import DeclaredLimit, PermitRequest
from orchestrator.fleet.connection import CentreSession, open_centre, read_capacity
from orchestrator.fleet.cross_checks import cross_check
from orchestrator.fleet.ledger import store_batch
from orchestrator.fleet.orders import fetch_orders
from orchestrator.fleet.overview import find_hosts, find_pools, find_runs, survey_fleet, survey_week
from orchestrator.fleet.permits import SESSION_LIMITS, ask_permit, declare_limit, release_permit
from orchestrator.views.fleet_metrics import fleet_metrics_text
from tests.fleet.centres import Centre, make_centre
from tests.fleet.postgres import PostgresServer

NIGHT = datetime.now(UTC).replace(hour=2, minute=0, second=0, microsecond=0) - timedelta(
    days=31
)  # the last of them are of this week
BATCH = 1000
LIMITS = 100
_TAKE = (
    "UPDATE public.slots SET holder = 'me' WHERE id = (SELECT id FROM public.slots WHERE holder IS NULL LIMIT 1 FOR UPDATE SKIP LOCKED)"
    " RETURNING id"
)
_HOSTS = """
DO $$ BEGIN
    FOR number IN 1..%d LOOP
        EXECUTE format('CREATE ROLE poolferry_bench_%%s LOGIN IN ROLE poolferry_host', number);
    END LOOP;
    INSERT INTO poolferry.hosts (name, role, machine, joined_at)
        SELECT 'host-' || n, 'poolferry_bench_' || n, 'm', now() FROM generate_series(1, %d) AS n;
END $$
"""
_BEATS = """
INSERT INTO poolferry.beats (host, host_at, every_s, version) SELECT id, now(), 300, '1' FROM poolferry.hosts;
ALTER TABLE poolferry.beats DISABLE TRIGGER seen;
UPDATE poolferry.beats SET seen_at = now() - interval '1 day', host_at = now() - interval '1 day' WHERE host % 500 = 0;
INSERT INTO poolferry.jobs (host, job, engine, source, target, state, why, hint, late_after_s, copied_at, last_outcome, last_ended_at)
    SELECT id, 'job-' || n, 'rsync', '/srv/' || n, 'backup', 'up', 'copied 12 files', '', 93600,
        now() - CASE WHEN (id * 20 + n) % 1000 = 0 THEN interval '2 days' ELSE interval '9 hours' END, 'done', now() - interval '9 hours'
    FROM poolferry.hosts CROSS JOIN generate_series(1, JOBS) AS n;
ANALYZE;
"""


def rows_of(host: int, jobs: int, nights: int) -> list[LedgerRow]:
    """Make what a host tells of its nights."""
    rows = []
    for number in range(jobs * nights):
        begun = NIGHT + timedelta(days=number // jobs, seconds=host % 7200 + number % jobs * 60)
        body = {
            "job": f"job-{number % jobs}", "engine": "rsync", "source": f"/srv/{number % jobs}", "target": "backup", "type": "run",
            "begun_at": begun.isoformat(), "begun_why": 'at "0 2 * * *"', "ended_at": (begun + timedelta(minutes=7)).isoformat(),
            "outcome": "failed" if (host + number) % 97 == 0 else "done", "why": "copied 12 files (3.1 MiB) in 4 folders", "hint": "",
            "moved_bytes": 3_250_000, "took_s": 421.5, "resumed": 0, "attempts": 1, "points": ["2026-03-01T020000Z"], "warnings": [],
        }  # fmt: skip
        born = int(begun.timestamp() * 1e6)
        rows.append(
            LedgerRow(
                subject="run", incarnation=1, key=str(number + 1), seq=number + 1, born=born, body=body, back=False
            )
        )
    return rows


def visit(centre: Centre, hosts: list[int], jobs: int, nights: int) -> None:
    """Tell the centre all that these hosts know, one after the other."""
    for host in hosts:
        identity = FleetIdentity(host=f"host-{host}", role=f"poolferry_bench_{host}")
        rows, before = rows_of(host, jobs, nights), ""
        with open_centre(centre.options, identity, purpose="bench") as session:
            for at in range(0, len(rows), BATCH):
                batch = f"{host}-{at}"
                store_batch(session, rows[at : at + BATCH], host=host, before=before, batch=batch, incarnation=1)
                before = batch


def visit_kept(centre: Centre, hosts: list[int], jobs: int, nights: int) -> None:
    """Do the same as hosts whose sessions are kept do: here one after the other through one connection, each with its own rights."""
    with centre.administrator() as session:
        for host in hosts:
            session.change(f"SET SESSION AUTHORIZATION poolferry_bench_{host}")
            rows, before = rows_of(host, jobs, nights), ""
            for at in range(0, len(rows), BATCH):
                batch = f"{host}-{at}"
                store_batch(session, rows[at : at + BATCH], host=host, before=before, batch=batch, incarnation=1)
                before = batch
            session.change("RESET SESSION AUTHORIZATION")


def copy_kept(url: str, hosts: list[int], jobs: int, nights: int) -> None:
    """COPY the same rows through one connection."""
    with psycopg.connect(url, autocommit=True) as connection:
        for host in hosts:
            copy_rows(connection, rows_of(host, jobs, nights), host)


def copy_bare(url: str, hosts: list[int], jobs: int, nights: int) -> None:
    """COPY the same rows into a table without anything, with a connection for each host, too."""
    for host in hosts:
        with psycopg.connect(url) as connection:
            copy_rows(connection, rows_of(host, jobs, nights), host)


def copy_rows(connection: "psycopg.Connection[tuple[object, ...]]", rows: list[LedgerRow], host: int) -> None:
    """COPY rows as text."""
    text = io.StringIO()
    for row in rows:
        assert row.body is not None
        cells = [
            str(host),
            row.key,
            str(row.seq),
            str(row.born),
            *(json.dumps(cell) if isinstance(cell, list) else str(cell) for cell in row.body.values()),
        ]
        text.write("\t".join(cells) + "\n")
    with connection.cursor().copy("COPY public.bare FROM STDIN") as copy:
        copy.write(text.getvalue())


def side_by_side(work: object, count: int, hosts: range, *arguments: object) -> float:
    """Run it in so many processes, each with a share of the hosts; return the seconds."""
    began = time.perf_counter()
    shares = [[host for host in hosts if host % count == share] for share in range(count)]
    processes = [multiprocessing.Process(target=work, args=(arguments[0], share, *arguments[1:])) for share in shares]  # type: ignore[arg-type]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
        assert each.exitcode == 0
    return time.perf_counter() - began


def in_kept_sessions(centre: Centre, told: argparse.Namespace) -> None:
    """Compare sessions that last with a COPY through connections that last, in turns; leave nothing behind."""
    url, hosts = centre.server.url(centre.database), range(1, 1 + min(100, told.hosts))
    for _ in range(3):
        ours = side_by_side(visit_kept, told.connections, hosts, centre, told.jobs, told.nights)
        bare = side_by_side(copy_kept, told.connections, hosts, url, told.jobs, told.nights)
        runs = len(hosts) * told.jobs * told.nights
        print(
            f"  kept sessions: {runs / ours:,.0f} runs/s; COPY {runs / bare:,.0f} rows/s; ratio {bare / ours:.2f}",
            flush=True,
        )
        with centre.administrator() as session:
            session.change("TRUNCATE public.bare, poolferry.runs, poolferry.progress")
            session.change("UPDATE poolferry.quotas SET bytes = 0")


def grow(centre: Centre, told: argparse.Namespace) -> None:
    """Store all nights in ten parts, four of them beside a bare COPY of the same rows, and time the pages after each."""
    url, whole, rest = centre.server.url(centre.database), (0.0, 0.0), 0.0
    print(
        "  runs stored | runs/s | COPY rows/s | ratio | MiB | fleet status ms | fleet runs ms | fleet runs --outcome failed ms"
    )
    for part in range(10):
        hosts = range(1 + told.hosts * part // 10, 1 + told.hosts * (part + 1) // 10)
        runs = len(hosts) * told.jobs * told.nights
        ours = side_by_side(visit, told.connections, hosts, centre, told.jobs, told.nights)
        bare = None
        if part % 3 == 0:  # at four sizes
            bare = side_by_side(copy_bare, told.connections, hosts, url, told.jobs, told.nights)
            whole = (whole[0] + ours, whole[1] + bare)
        rest += ours
        with centre.administrator() as session:
            session.change("TRUNCATE public.bare")
            session.change("ANALYZE poolferry.runs", seconds=600)  # as autovacuum does within a minute
            size = session.first("SELECT pg_total_relation_size('poolferry.runs') AS bytes")
            pages = (
                median(survey_fleet, session),
                median(find_runs, session, host=None, job=None, outcome=None),
                median(find_runs, session, host=None, job=None, outcome="failed"),
            )
        stored = told.hosts * (part + 1) // 10 * told.jobs * told.nights
        beside = f"{runs / bare:,.0f} | {bare / ours:.2f}" if bare else "|"
        mib = size["bytes"] / 2**20 if size else 0
        shown = " | ".join(f"{1000 * each:.0f}" for each in pages)
        print(f"  {stored:,} | {runs / ours:,.0f} | {beside} | {mib:,.0f} | {shown}", flush=True)
    total = told.hosts * told.jobs * told.nights
    print(f"  all: {total / rest:,.0f} runs/s; where COPY stood beside: ratio {whole[1] / whole[0]:.2f}")
    with centre.administrator() as session:
        session.change("DROP TABLE public.bare")


def three_ways(centre: Centre) -> None:
    """Measure how a batch may be stored, as its owner: the statement in use, COPY into a temporary table, rows in a pipeline."""
    from orchestrator.fleet.ledger import _RUN_COLUMNS, _RUN_NAMES, _RUNS

    rows = [
        {**(row.body or {}), "incarnation": 9, "id": int(row.key), "seq": row.seq, "born": row.born}
        for row in rows_of(1, 20, 50)
    ]
    names = ", ".join(_RUN_NAMES)
    upsert = _RUNS[_RUNS.index("ON CONFLICT") :]
    chosen = ", ".join("resumed <> 0" if name == "resumed" else name for name in _RUN_NAMES)
    with psycopg.connect(centre.server.url(centre.database)) as connection:

        def one_json() -> None:
            connection.execute(_RUNS.encode(), {"host": 1, "rows": json.dumps(rows)})

        def copied() -> None:
            connection.execute(f"CREATE TEMP TABLE told ({_RUN_COLUMNS}) ON COMMIT DROP".encode())
            with connection.cursor().copy(f"COPY told ({names}) FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(
                        [json.dumps(row[name]) if isinstance(row[name], list) else row[name] for name in _RUN_NAMES]
                    )
            connection.execute(
                f"INSERT INTO poolferry.runs AS known (host, {names}) SELECT 1, {chosen} FROM told {upsert}".encode()  # noqa: S608
            )

        def piped() -> None:
            marks = ", ".join("%s::int <> 0" if name == "resumed" else "%s" for name in _RUN_NAMES)
            values = [
                [json.dumps(row[name]) if isinstance(row[name], list) else row[name] for name in _RUN_NAMES]
                for row in rows
            ]
            statement = f"INSERT INTO poolferry.runs AS known (host, {names}) VALUES (1, {marks}) {upsert}"  # noqa: S608
            connection.cursor().executemany(statement.encode(), values)

        for name, way in (("one JSON value", one_json), ("COPY and upsert", copied), ("executemany", piped)):
            took = []
            for _ in range(7):
                began = time.perf_counter()
                way()
                took.append(time.perf_counter() - began)
                connection.rollback()
            print(f"  1,000 rows by {name:16} {1000 * sorted(took)[3]:6.0f} ms (median of 7)")


def lend_and_give_back(
    centre: Centre, hosts: list[int], until: float, said: "Queue[int]", shared: tuple[str, ...] = ()
) -> None:
    """Ask for a permit and give it back, again and again, each host's job in turn on a session of its host."""
    count = 0
    with ExitStack() as stack:
        identities = [FleetIdentity(host=f"host-{n}", role=f"poolferry_bench_{n}") for n in hosts]
        lines = [
            stack.enter_context(open_centre(centre.options, each, purpose="permit", limits=SESSION_LIMITS))
            for each in identities
        ]
        while time.monotonic() < until:
            for host, line in zip(hosts, lines, strict=True):
                answer = ask_permit(line, "job", PermitRequest(limits=(f"link-{host % LIMITS}", *shared)), taken=False)
                assert answer.granted, answer
                assert answer.permit is not None
                release_permit(line, answer.permit, within=30)
                count += 1
    said.put(count)


def lend_of_one_site(centre: Centre, hosts: list[int], until: float, said: "Queue[int]") -> None:
    """Do the same with a limit that all ask for: one after the other."""
    lend_and_give_back(centre, hosts, until, said, ("site",))


def take_bare(url: str, shares: list[int], until: float, said: "Queue[int]") -> None:
    """Take a row as a queue does, and give it back: SELECT … FOR UPDATE SKIP LOCKED, each in a transaction of its own."""
    count = 0
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < until:
            taken = connection.execute(_TAKE).fetchone()
            assert taken is not None
            connection.execute("UPDATE public.slots SET holder = NULL WHERE id = %s", taken)
            count += 1
    said.put(count)


def each_second(work: object, where: object, count: int, *, each: int, seconds: float) -> float:
    """Run it in so many processes with so many hosts each; return how often each second it was done."""
    said: Queue[int] = multiprocessing.Queue()
    until = time.monotonic() + 1 + seconds
    shares = [list(range(1 + share * each, 1 + (share + 1) * each)) for share in range(count)]
    processes = [multiprocessing.Process(target=work, args=(where, share, until, said)) for share in shares]  # type: ignore[arg-type]
    for process in processes:
        process.start()
    began = time.monotonic()
    total = sum(said.get(timeout=seconds + 120) for _ in processes)
    for process in processes:
        process.join()
    return total / (time.monotonic() - began)


def permits(centre: Centre, hosts: int, *, seconds: float = 8) -> None:
    """Measure permits lent and given back, with a hundred limits and one for the whole site, beside a bare queue of rows."""
    each = max(1, min(5, hosts // 8))
    with centre.administrator() as session:
        for number in range(LIMITS):
            declare_limit(session, DeclaredLimit(name=f"link-{number}", slots=4000))
        declare_limit(session, DeclaredLimit(name="site", slots=100_000))
        session.change("CREATE TABLE public.slots (id integer PRIMARY KEY, holder text)")
        session.change("INSERT INTO public.slots SELECT n FROM generate_series(1, 1000) AS n")
    bare = each_second(take_bare, centre.server.url(centre.database), 8, each=1, seconds=seconds)
    print(f"  bare FOR UPDATE SKIP LOCKED: {bare:,.0f}/s by 8 processes")
    for what, work in (("each of its own limit", lend_and_give_back), ("all of one limit, too", lend_of_one_site)):
        ours = each_second(work, centre, 8, each=each, seconds=seconds)
        print(f"  permits lent and given back, {what}: {ours:,.0f}/s over {8 * each} sessions; ratio {ours / bare:.2f}")
    with centre.administrator() as session:
        session.change("DROP TABLE public.slots")


def median(work: object, *arguments: object, **named: object) -> float:
    """Do it five times; return the median of the seconds."""
    took = []
    for _ in range(5):
        began = time.perf_counter()
        work(*arguments, **named)  # type: ignore[operator]
        took.append(time.perf_counter() - began)
    return sorted(took)[2]


def timed(what: str, work: object, *arguments: object, **named: object) -> None:
    """Print the median of five."""
    print(f"  {what:34} {1000 * median(work, *arguments, **named):6.0f} ms (median of 5)")


def look(session: CentreSession) -> None:
    """Time what people look at."""
    timed("front page: poolferry fleet status", survey_fleet, session)
    timed("poolferry fleet hosts", find_hosts, session, limit=100)
    timed("poolferry fleet runs", find_runs, session, host=None, job=None, outcome=None)
    timed("poolferry fleet runs --outcome", find_runs, session, host=None, job=None, outcome="failed")
    timed("poolferry fleet runs --host", find_runs, session, host="host-7", job=None, outcome=None)
    row = session.first(
        "SELECT pg_database_size(current_database()) AS bytes, pg_total_relation_size('poolferry.runs') AS runs"
    )
    if row:
        print(f"  size: {row['bytes'] / 2**20:.0f} MiB, of it runs with their indexes {row['runs'] / 2**20:.0f} MiB")


def fetch_logging_in(centre: Centre, hosts: list[int], until: float, said: "Queue[int]") -> None:
    """Look for orders as hosts do whose sessions the centre has no room to keep: each look logs in."""
    count = 0
    while time.monotonic() < until:
        host = hosts[count % len(hosts)]
        identity = FleetIdentity(host=f"host-{host}", role=f"poolferry_bench_{host}")
        with open_centre(centre.options, identity, purpose="orders") as session:
            assert read_capacity(session, 60).hosts
            fetch_orders(session, "m")
        count += 1
    said.put(count)


def fetch_in_kept_sessions(centre: Centre, hosts: list[int], until: float, said: "Queue[int]") -> None:
    """Look for orders in sessions that are kept."""
    count = 0
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(
                open_centre(
                    centre.options,
                    FleetIdentity(host=f"host-{n}", role=f"poolferry_bench_{n}"),
                    purpose="orders",
                )
            )
            for n in hosts
        ]
        while time.monotonic() < until:
            session = sessions[count % len(sessions)]
            assert read_capacity(session, 60).hosts
            fetch_orders(session, "m")
            count += 1
    said.put(count)


def orders(centre: Centre, hosts: int, *, seconds: float = 8) -> None:
    """Measure how many looks for orders a centre answers, of all hosts in turn, with one open order for each hundredth."""
    each = max(1, min(5, hosts // 8))
    with centre.administrator() as session:
        session.change(
            "INSERT INTO poolferry.orders (host, verb, job, asked_by, deadline)"
            " SELECT id, 'run', 'job-1', 'ann', now() + interval '1 day' FROM poolferry.hosts WHERE id % 100 = 1"
        )
        session.change("ANALYZE poolferry.orders")
    kept = each_second(fetch_in_kept_sessions, centre, 8, each=each, seconds=seconds)
    print(f"  looks for orders in sessions that are kept: {kept:,.0f}/s over {8 * each} sessions")
    anew = each_second(fetch_logging_in, centre, 4, each=max(1, hosts // 4), seconds=seconds)
    print(f"  looks for orders that log in each time: {anew:,.0f}/s by 4 processes, of all hosts in turn", flush=True)


def look_at_all(centre: Centre) -> None:
    """Time what looks at all hosts: the exporter, the watch, the weekly letter."""
    now = datetime.now(UTC)
    with centre.administrator() as session:
        timed("metrics of all hosts, as text", lambda: fleet_metrics_text(find_hosts(session, limit=1_000_000), now))
        timed("cross checks of the watch", cross_check, session)
        timed("what ran in a week, for the letter", survey_week, session)
        timed("fleet pools", find_pools, session, host=None)
        size = len(fleet_metrics_text(find_hosts(session, limit=1_000_000), now))
        print(f"  size of the metrics: {size / 2**20:.1f} MiB", flush=True)


def look_on_the_worst_day(centre: Centre) -> None:
    """Time the same when the centre hears of no host any more, and all jobs are late: what people see, and how long it is."""
    with centre.administrator() as session:
        session.change(
            "UPDATE poolferry.beats SET seen_at = now() - interval '3 days', host_at = now() - interval '3 days'"
        )
        session.change("ALTER TABLE poolferry.jobs DISABLE TRIGGER USER")
        session.change("UPDATE poolferry.jobs SET late_at = now() - interval '2 days'", seconds=600)
        session.change("ALTER TABLE poolferry.jobs ENABLE TRIGGER USER")
        session.change("ANALYZE poolferry.jobs, poolferry.beats")
        print("  the worst day: all hosts silent, all jobs late")
        look(session)
    look_at_all(centre)
    with tempfile.TemporaryDirectory(prefix="pf-") as folder:
        settings = Settings(config=f"{folder}/etc", state=f"{folder}/state")
        os.makedirs(settings.where.config, mode=0o700)
        with open(f"{folder}/etc/poolferry.toml", "x", encoding="utf-8") as file:
            file.write('[notice.admin]\nkind = "webhook"\nurl = "http://127.0.0.1:9/nobody-listens"\n')
        for what in ("first", "second"):
            began = time.perf_counter()
            watch_once(settings, centre=centre.server.url(centre.database), keep=timedelta(days=730))
            print(f"  fleet watch, the {what} look {1000 * (time.perf_counter() - began):6.0f} ms")
        with contextlib.closing(sqlite3.connect(f"{folder}/state/history.sqlite")) as history:
            for kind, subject, body in history.execute("SELECT kind, length(subject), length(body) FROM messages"):
                print(f"  its notice: {kind}, a subject of {subject:,} characters, a body of {body:,}", flush=True)


def main() -> None:
    """Measure, and print each figure with what it stands beside."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--hosts", type=int, default=200)
    asked.add_argument("--jobs", type=int, default=20)
    asked.add_argument("--nights", type=int, default=30)
    asked.add_argument("--connections", type=int, default=os.cpu_count() or 2)
    told = asked.parse_args()
    total = told.hosts * told.jobs * told.nights
    server = PostgresServer(
        shared_buffers="512MB",
        max_wal_size="1GB",
        autovacuum="on",
        synchronous_commit="on",
        fsync="on",
        full_page_writes="on",
    )  # as it is installed, with more memory
    (server.data / "pg_hba.conf").write_text("local all all trust\n")
    try:
        server.start()
        centre = make_centre(server)
        with centre.administrator() as session:
            session.change(_HOSTS % (told.hosts, told.hosts), seconds=600)
        print(
            f"{told.hosts:,} hosts x {told.jobs} jobs x {told.nights} nights = {total:,} runs, {told.connections} connections at once"
        )
        three_ways(centre)
        with centre.administrator() as session:
            session.change(_BEATS.replace("JOBS", str(told.jobs)), seconds=600)
            session.change(f"CREATE TABLE public.bare ({', '.join(f'c{n} text' for n in range(21))})")
        if told.nights:
            in_kept_sessions(centre, told)
            grow(centre, told)
        with centre.administrator() as session:
            look(session)
        look_at_all(centre)
        permits(centre, told.hosts)
        orders(centre, told.hosts)
        look_on_the_worst_day(centre)
    finally:
        server.remove()


if __name__ == "__main__":
    main()

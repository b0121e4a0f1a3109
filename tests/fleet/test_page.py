"""The page jobs/fleet.md: its commands are typed as they stand, as root at a centre and on a host that joins it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.fleet.connection import CentreSession
from tests.fleet.centres import Centre
from tests.fleet.postgres import PostgresServer, program

PAGE = Path(__file__).parents[2] / "jobs" / "fleet.md"
COMMAND = f'#!/bin/sh\nPYTHONPATH={PAGE.parents[1]} exec {sys.executable} -m orchestrator "$@"\n'
INSTALLED = ("apt-get install", "pip install")  # by `make`, before any test


def lines_of_the_page() -> list[str]:
    """The lines of its blocks for a shell, in their order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if not line.startswith(INSTALLED)]


@pytest.mark.root
def test_what_the_page_says_works_as_it_stands(tmp_path: Path) -> None:
    server = PostgresServer()
    (server.data / "pg_hba.conf").write_text(
        "local all postgres trust\nlocal all root peer\nlocal all all scram-sha-256\n"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "poolferry").write_text(COMMAND)
    (tmp_path / "bin" / "poolferry").chmod(0o755)
    here = os.environ | {
        "PATH": f"{tmp_path}/bin:{Path(program('createdb')).parent}:{os.environ['PATH']}",
        "PGHOST": str(server.folder), "PGPORT": str(server.port), "LC_ALL": "C.UTF-8",
    }  # fmt: skip

    def typed(line: str, more: dict[str, str] | None = None, *, codes: tuple[int, ...] = (0,)) -> str:
        line = line.replace("/var/", f"{tmp_path}/var/")
        done = subprocess.run(["sh", "-c", line], env=here | (more or {}), cwd="/", capture_output=True, text=True)
        assert done.returncode in codes, (line, done.stdout, done.stderr)
        return done.stdout

    try:
        server.start()
        for folder in ("var/backups", "var/lib/prometheus/node-exporter"):
            (tmp_path / folder).mkdir(parents=True)
        lines = lines_of_the_page()
        assert len(lines) == 21
        for line in lines:
            came = typed(line, codes=(0, 4) if "fleet status" in line or "fleet watch" in line else (0,))
            if "fleet invite web-1" in line:
                host = {"POOLFERRY_CONFIG": f"{tmp_path}/etc", "POOLFERRY_STATE": f"{tmp_path}/lib"}
                if "--again" in line:
                    typed("rm -r $POOLFERRY_STATE $POOLFERRY_CONFIG", host)
                address = re.search(r"postgresql://[^ ]+", came)
                assert address is not None
                join = came.replace(address[0], f"'postgresql:///poolferry?host={server.folder}&port={server.port}'")
                assert "joined as web-1" in typed(join, host)
                assert "none waits" in typed("poolferry fleet send", host)
        assert (tmp_path / "var/backups/poolferry.dump").stat().st_size > 1000
    finally:
        server.remove()


# As hosts of the first version say it, word for word: never changed, and dropped two versions later.
FIRST_VERSION = (
    "INSERT INTO poolferry.progress (host) VALUES (%(host)s) ON CONFLICT (host) DO NOTHING",
    "UPDATE poolferry.progress SET incarnation = 1, batch = 'b1', seq = greatest(seq, 7) WHERE host = %(host)s AND batch = ''",
    (
        "INSERT INTO poolferry.runs AS known (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why,"
        " ended_at, outcome, why, hint, moved_bytes, took_s, resumed, attempts, points, warnings) VALUES (%(host)s, 1, 1, 7, 1, 'photos',"
        " 'rsync', '/srv', 'backup', 'run', now(), '', now(), 'done', '', '', 1, 1.5, false, 1, '[]', '[]')"
        " ON CONFLICT (host, incarnation, id) DO UPDATE SET seq = excluded.seq, outcome = excluded.outcome"
        " WHERE excluded.seq > known.seq"
    ),
    "UPDATE poolferry.runs SET removed = true, seq = 8 WHERE host = %(host)s AND incarnation = 1 AND id = 1",
    (
        "INSERT INTO poolferry.records AS known (host, subject, incarnation, key, seq, born, body) VALUES (%(host)s, 'point', 1, '1', 7, 1,"
        " '{}') ON CONFLICT (host, subject, incarnation, key) DO UPDATE SET seq = excluded.seq, body = excluded.body"
        " WHERE excluded.seq > known.seq"
    ),
    (
        "INSERT INTO poolferry.beats (host, host_at, every_s, version, waiting, mistakes) VALUES (%(host)s, now(), 300, '0.1', 0, 0)"
        " ON CONFLICT (host) DO UPDATE SET host_at = excluded.host_at, every_s = excluded.every_s"
    ),
    (
        "INSERT INTO poolferry.jobs AS known (host, job, engine, source, target, state, why, hint, late_after_s, copied_at, due_at, next_at,"
        " running_at, last_outcome, last_ended_at, failures, declared) VALUES (%(host)s, 'photos', 'rsync', '/srv', 'backup', 'up', '', '',"
        " 7200, now(), NULL, NULL, NULL, 'done', now(), 0, true) ON CONFLICT (host, job) DO UPDATE SET state = excluded.state"
    ),
    "UPDATE poolferry.jobs SET declared = false WHERE host = %(host)s AND declared AND NOT job = ANY(ARRAY['photos'])",
    (
        "SELECT permit, granted, busy, place, in_limit, used, slots, opens, unknown, clamped"
        " FROM poolferry.ask_permit('photos', ARRAY['link'], 1, 30, false)"
    ),
    "SELECT poolferry.release_permit(1)",
    "SELECT key, verb, job, point, span, asked_by, state, attempt, late FROM poolferry.fetch_orders('a-machine')",
    "SELECT poolferry.report_order(gen_random_uuid(), 'taken', 1, NULL, '')",
)


def test_a_centre_of_today_understands_a_host_of_the_first_version(centre: Centre) -> None:
    with centre.session(centre.join("old")) as session:
        for _ in range(2):
            say_all(session)


def say_all(session: CentreSession) -> None:
    """Say what a host of the first version says."""
    row = session.first("SELECT poolferry.this_host() AS host")
    assert row is not None
    for statement in FIRST_VERSION:
        session.change(statement, row)

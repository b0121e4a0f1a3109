"""The daemon of a host of a fleet: it tells the centre by itself, and a centre that hangs or is away delays no run."""

import os
import time
from pathlib import Path

import pytest

from orchestrator.config.this_machine import machine_id_hash
from tests.daemon.daemon_world import daemon, runs, until
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost
from tests.fleet.lines import SilentLine


def test_the_daemon_tells_what_it_does(tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch, machine=machine_id_hash())
    host.ferry.job(more='every = "1h"\nlate-after = "2h"\n')
    with daemon(host.ferry) as clock, centre.administrator() as session:
        clock.says("photos: done: ")
        until(
            lambda: session.first("SELECT 1 FROM poolferry.runs WHERE outcome = 'done'") is not None,
            "the centre has the run", lambda: clock.log,
        )  # fmt: skip
        until(
            lambda: session.first("SELECT 1 FROM poolferry.jobs") is not None,
            "the centre has the job",
            lambda: clock.log,
        )
        assert clock.end() == 0
        job = session.first("SELECT job, state, late_after_s FROM poolferry.jobs")
    assert job is not None
    assert (job["job"], job["late_after_s"]) == ("photos", 7200)


def test_a_line_that_takes_all_and_passes_nothing_delays_no_run(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch, line: SilentLine
) -> None:
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch, machine=machine_id_hash())
    host.declare(f"postgresql://127.0.0.1:{line.port}/{centre.database}")
    host.record(count=3000)
    line.silence_after(40_000)  # in the middle of the first batch
    host.ferry.job()
    took = []
    with daemon(host.ferry) as clock:
        until(lambda: line.silent, "the line falls silent", lambda: clock.log)
        for _ in range(3):
            began = time.monotonic()
            assert host.ferry.run("run", "photos").code == 0
            took.append(time.monotonic() - began)
        assert clock.end() == 0
    alone = []
    os.unlink(host.ferry.config / "poolferry.toml")
    for _ in range(3):
        began = time.monotonic()
        assert host.ferry.run("run", "photos").code == 0
        alone.append(time.monotonic() - began)
    assert min(took) - min(alone) < 1, (took, alone)
    assert runs(host.ferry)[0]["run"] == 3006

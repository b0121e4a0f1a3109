"""(g) The clock with many jobs: how fast `status` answers, and what the daemon takes when nothing is to be done."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.domain.run import Outcome
from orchestrator.history.store import History, open_history
from tests.bench.rows import Row, timed, worked
from tests.bench.trees import Trees
from tests.history.records import begin, report
from tests.processes import fields, figure

JOBS, RUNS = 200, 100_000
_WATCHED_S = 90.0
_MOST_MIB, _MOST_SHARE = 80.0, 0.01
_MOST_STATUS_MS, _STATUS_ROUNDS = 300.0, 9
_TICKS = os.sysconf("SC_CLK_TCK")


def clock(trees: Trees, rounds: int) -> Iterator[Row]:
    """(g) 200 jobs of four kinds, 100,000 runs in history, watched for a minute and a half. `rounds` is not used."""
    folder = trees.folder / "clock"
    subprocess.run(["rm", "-rf", os.fspath(folder)], check=True)
    _declare(folder)
    with open_history(os.fspath(folder / "state" / "history.sqlite")) as history:
        _fill(history, folder)
    yield _status(folder)
    with subprocess.Popen(_command(folder, "daemon"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(15)
            before, began = _worked(process.pid), time.monotonic()
            time.sleep(_WATCHED_S)
            share = (_worked(process.pid) - before) / (time.monotonic() - began)
            peak = figure(process.pid, "status", "VmHWM:") / (1 << 20)
        finally:
            process.terminate()
    what = f"idle daemon, {JOBS} jobs, {RUNS:,} runs"
    yield Row(part="g", what=f"{what}: memory", values=(peak,), most=_MOST_MIB, unit="MiB", note="its peak")
    told = f"{share * 100:.2f} % of a core over {_WATCHED_S:.0f} s"
    yield Row(part="g", what=f"{what}: share of a core", values=(share,), most=_MOST_SHARE, note=told)


def _command(folder: Path, word: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator", "--config", f"{folder}/etc", "--state", f"{folder}/state", word]


def _status(folder: Path) -> Row:
    """Return what a person or a monitoring plugin waits for."""

    def start() -> None:
        subprocess.run(_command(folder, "status"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    start()
    before = worked()
    took = tuple(timed(start) * 1000 for _ in range(_STATUS_ROUNDS))
    share = (worked() - before) / _STATUS_ROUNDS * 1000
    what, note = f"`poolferry status`, {JOBS} jobs, {RUNS:,} runs", f"caches warm; {share:.0f} ms of a core"
    return Row(part="g", what=what, values=took, most=_MOST_STATUS_MS, unit="ms", note=note)


def _declare(folder: Path) -> None:
    """Jobs whose time does not come while they are watched."""
    hour = (datetime.now(UTC).astimezone() + timedelta(hours=3)).hour
    kinds = (
        f'daily = "{hour:02}:30"',
        f'schedule = "15 {hour} * * mon-fri"',
        f'schedule = "*/10 {hour} * * *"',
        'every = "9d"',
    )
    (folder / "etc" / "jobs").mkdir(parents=True)
    places = ""
    for number in range(JOBS):
        places += f'[place.p{number}]\npath = "{folder}/copies/{number}"\n'
        text = f'engine = "rsync"\nsource = "{folder}/source{number}"\ntarget = "p{number}"\n{kinds[number % 4]}\n'
        (folder / "etc" / "jobs" / f"job{number}.toml").write_text(text)
    (folder / "etc" / "targets.toml").write_text(places)


def _fill(history: History, folder: Path) -> None:
    """Each job's newest run has ended a while ago, and each has a verified copy."""
    now = datetime.now(UTC)
    with history.together():
        for number in range(RUNS):
            at, job = now - timedelta(minutes=(RUNS - number) / 60), f"job{number % JOBS}"
            run = begin(history, job, now=at, target=f"{folder}/copies/{number % JOBS}")
            history.ended(run, report(run, job, outcome=Outcome.FAILED if number % 7 == 0 else Outcome.DONE), at)
            if number % 7 and number // JOBS % 50 == 0:
                place, name = f"p{number % JOBS}", f"{at:%Y-%m-%dT%H%M%SZ}"
                history.point_current(job, place, name, run, at)
                history.point_verified(job, place, name, run, at)


def _worked(pid: int) -> float:
    return sum(map(int, fields(pid)[11:13])) / _TICKS

"""(g) The daemon when nothing is to be done: its memory, and its share of a core. Changes things."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.domain.run import Outcome
from orchestrator.history.store import History, open_history
from tests.bench.memory import figure
from tests.bench.rows import Row
from tests.bench.trees import Trees
from tests.history.records import begin, report

JOBS, RUNS = 200, 100_000
_WATCHED_S = 90.0
_MOST_MIB, _MOST_SHARE = 80.0, 0.01
_TICKS = os.sysconf("SC_CLK_TCK")


def clock(trees: Trees, rounds: int) -> Iterator[Row]:
    """(g) 200 jobs of four kinds, 100,000 runs in history, watched for a minute and a half. `rounds` is not used."""
    folder = trees.folder / "clock"
    subprocess.run(["rm", "-rf", os.fspath(folder)], check=True)
    _declare(folder)
    with open_history(os.fspath(folder / "state" / "history.sqlite")) as history:
        _fill(history)
    command = [
        sys.executable,
        "-m",
        "orchestrator",
        "--config",
        f"{folder}/etc",
        "--state",
        f"{folder}/state",
        "daemon",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(15)
            before, began = _worked(process.pid), time.monotonic()
            time.sleep(_WATCHED_S)
            share = (_worked(process.pid) - before) / (time.monotonic() - began)
            peak = figure(f"/proc/{process.pid}/status", "VmHWM:") / (1 << 20)
        finally:
            process.terminate()
    what = f"idle daemon, {JOBS} jobs, {RUNS:,} runs"
    yield Row(part="g", what=f"{what}: memory", values=(peak,), most=_MOST_MIB, unit="MiB", note="its peak")
    told = f"{share * 100:.2f} % of a core over {_WATCHED_S:.0f} s"
    yield Row(part="g", what=f"{what}: share of a core", values=(share,), most=_MOST_SHARE, note=told)


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


def _fill(history: History) -> None:
    now = datetime.now(UTC)
    with history.together():
        for number in range(RUNS):
            at, job = now - timedelta(minutes=(RUNS - number) / 60), f"job{number % JOBS}"
            run = begin(history, job, now=at)
            history.ended(run, report(run, job, outcome=Outcome.FAILED if number % 7 == 0 else Outcome.DONE), at)


def _worked(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS

"""(e) How fast commands answer, also with a long history."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from orchestrator.domain.names import point_name
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.history.store import History, open_history
from tests.bench.ferry import Ferry, ferry
from tests.bench.rows import Row, timed
from tests.bench.trees import Trees

JOBS = 5
_EVERY_SO_MANY = 4  # of the runs made a point, the others found nothing to do


def starting(trees: Trees, rounds: int, *, runs: int = 10_000, often: int = 5) -> Iterator[Row]:
    """(e) `--help`, `status` with so many runs behind it, and what those cost a run that finds nothing to do."""
    source = trees.folder / "few"
    source.mkdir(exist_ok=True)
    (source / "file").write_bytes(b"content")
    with ferry(trees.folder) as house:
        names = [house.job(source, f"job{number}" if number else "bench") for number in range(JOBS)]
        house.run("done")
        yield _row(house, "an empty Python, for comparison", [sys.executable, "-c", "pass"], None, often * rounds)
        yield _row(house, "`poolferry --help`", house.argv("--help"), 100, often * rounds)
        yield _row(
            house, "`run`, nothing changed, in a tree of one file", house.argv("run", "bench"), None, often * rounds
        )
        make_history(house, names, runs)
        what = f"with {runs:,} runs in history"
        yield _row(house, f"`poolferry status` {what}", house.argv("status"), 250, often * rounds)
        yield _row(
            house,
            f"`run`, nothing changed, in a tree of one file, {what}",
            house.argv("run", "bench"),
            None,
            often * rounds,
        )


def _row(house: Ferry, what: str, argv: list[str], most: float | None, rounds: int) -> Row:
    def start() -> None:
        # 4: status found a job late
        assert subprocess.run(argv, capture_output=True, env=house.environment).returncode in (0, 4)

    start()
    took = tuple(timed(start) * 1000 for _ in range(rounds))
    return Row(part="e", what=what, values=took, most=most, unit="ms", note="caches warm")


def make_history(house: Ferry, names: list[str], runs: int) -> None:
    """So many runs of these jobs, an hour apart, or less where that would lie before 1970; one wait for the disk."""
    apart = min(timedelta(hours=1), timedelta(days=50 * 365) / runs)
    with open_history(str(house.state / "history.sqlite")) as history, history.together():
        for number in range(runs):
            at = datetime.now(UTC) - apart * (runs - number)
            _run(history, names[number % len(names)], at, points=number // len(names) % _EVERY_SO_MANY == 0)


def _run(history: History, job: str, at: datetime, *, points: bool) -> None:
    """One run as a real one leaves it."""
    run = history.begin(
        job=job, engine="rsync", source="/srv/data", target="/backup/data", now=at, pid=1, process_started=1, boot="", host="", why="by a command",
    )  # fmt: skip
    history.attempt_begun(run, 1, at)
    line = "rsync " + " ".join(f"--option-number-{number}=some-value" for number in range(20))
    steps = ["prepare the target", "copy /srv/data", "write the manifest", "publish the point"] if points else []
    history.planned(
        run, 1, json.dumps({"decision": "plan", "stages": [[{"does": action, "commands": [line]}] for action in steps]})
    )
    for index, action in enumerate(steps):
        row = history.step_begun(
            run,
            1,
            index,
            action=action,
            why="the source changed",
            worker="main",
            commands=(line,),
            expected=1000,
            now=at,
        )
        history.step_ended(row, now=at, moved=1000, confirmed=True, exits=(0,), last_output=("",), error=None)
    made = (point_name(at),) if points else ()
    for name in made:
        history.point_made(job, job, name, run, entries=1000, bytes=1_000_000, taken=at, now=at)
        history.point_verified(job, job, name, run, at)
    history.attempt_ended(run, 1, at, None, None)
    outcome = Outcome.DONE if points else Outcome.NOTHING
    report = RunReport(
        run=run, job=job, outcome=outcome, why="as always", hint="", moved_bytes=1000, took_s=1.0, resumed=False, attempts=1,
        steps=(), points=made, warnings=(),
    )  # fmt: skip
    history.ended(run, report, at)

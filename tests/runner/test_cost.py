"""Test what a run that finds nothing to do costs the disk. Real rsync and a real history."""

from pathlib import Path

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.run import Outcome
from orchestrator.engines.registry import load_engine
from orchestrator.history.store import open_history
from orchestrator.process.executor import Writer
from orchestrator.process.stop import StopRequest
from orchestrator.runner.context import ProcessIdentity, RunContext
from orchestrator.runner.run import run_job
from tests.engines.zfs.sides import NOW


def writes(ran: list[str]) -> int:
    """Return how many transactions changed something: each waits for the disk. What is said is not counted: a chroot has a word of its own."""
    found, changes = 0, False
    for statement in (each.lstrip().upper() for each in ran):
        told = statement.startswith("INSERT INTO EVENTS")
        changes = changes or (statement.startswith(("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH")) and not told)
        if statement == "COMMIT":
            found, changes = found + changes, False
    return found


def test_two_waits_for_the_disk(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "file").write_text("content")
    rsync = load_engine("rsync")
    job = Job(
        name="photos", file="photos.toml", engine="rsync", source=Location(path=str(source)),
        target=Place(name="backup", location=Location(path=str(target))), options=rsync.options(),
    )  # fmt: skip
    with open_history(str(tmp_path / "history.sqlite")) as history:
        tools = RunContext(
            engine=rsync, snapshotter=None, history=history, writer=lambda _: Writer(), clock=lambda: NOW, monotonic=lambda: 0.0,
            chance=lambda: 0.5, notify=lambda _: None, stop=StopRequest(), state=str(tmp_path), config="", hook_folders=(),
            hook_environment=(), identity=ProcessIdentity(pid=1, started=1, boot="a", host="here"), alive=lambda *_: True,
            watched=False,
        )  # fmt: skip
        assert run_job(job, tools, why="a test").outcome is Outcome.DONE
        ran: list[str] = []
        history._database._connection.set_trace_callback(ran.append)
        report = run_job(job, tools, why="a test")
        history._database._connection.set_trace_callback(None)
        told = history.views.run(report.run)
        (source / "file").write_text("changed")
        changed = list[str]()
        history._database._connection.set_trace_callback(changed.append)
        more = run_job(job, tools, why="a test")
        history._database._connection.set_trace_callback(None)
        found = history.views.run(more.run)
    assert report.outcome is Outcome.NOTHING
    assert ran.count("COMMIT") == 2
    assert more.outcome is Outcome.DONE
    assert found is not None
    steps = found.attempts[0].steps
    assert [step.action for step in steps if step.confirmed and step.ended_at] == [step.action for step in more.steps]
    assert writes(changed) <= len(more.steps) + 8  # one for each step, which records the end of the one before
    assert told is not None
    assert [attempt.number for attempt in told.attempts] == [1]

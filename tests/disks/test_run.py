"""Test that what ends when all is on the medium may take as long as its disk works, and no longer."""

from pathlib import Path
from time import monotonic

import pytest

from orchestrator.disks import run as hands
from orchestrator.disks.run import run_flush
from orchestrator.domain.errors import OrchestratorError, Stalled
from orchestrator.domain.plan import Effect, Pipeline, single_command
from orchestrator.process.executor import Writer


def shell(text: str) -> Pipeline:
    return single_command("sh", "-c", text, effect=Effect.WRITES)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a disk has done: the writes that ended are the fifth number, the time that it was busy the tenth."""
    monkeypatch.setattr(hands, "STUCK", 2.0)
    monkeypatch.setattr(hands, "GONE", 1.5)
    stat = tmp_path / "stat"
    stat.write_text("1 0 8 0 1 0 8 0 0 1 1 0 0 0 0 0 0\n")
    return str(stat)


def test_it_may_be_silent_for_as_long_as_the_disk_writes(disk: str) -> None:
    begun = monotonic()
    run_flush(
        Writer(),
        shell(f"for n in $(seq 8); do echo 1 0 8 0 $n 0 8 >{disk}.new; mv {disk}.new {disk}; sleep 0.5; done"),
        disk,
    )
    assert monotonic() - begun > 3


BUSY = "for n in $(seq 200); do echo 1 0 8 0 1 0 8 0 0 $n $n 0 0 0 0 0 0 >{0}.new; mv {0}.new {0}; sleep 0.1; done"


@pytest.mark.parametrize("meanwhile", ["rm {}", ":", BUSY], ids=["gone", "still", "busy with one request for ever"])
def test_it_is_ended_once_the_disk_does_nothing_more(disk: str, meanwhile: str) -> None:
    begun = monotonic()
    with pytest.raises(Stalled, match="the disk does not answer"):
        run_flush(Writer(), shell(f"{meanwhile.format(disk)}; exec sleep 30"), disk)
    assert monotonic() - begun < 15


def test_of_a_disk_that_tells_nothing_its_silence_is_no_sign(disk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "STUCK", 60.0)
    run_flush(Writer(), shell("sleep 3"), f"{disk}-of-no-disk")


def test_how_it_ended_is_told(disk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "_BUSY_PAUSE", 0)
    for works in (disk, f"{disk}-of-no-disk"):
        run_flush(Writer(), shell("true"), works)
        with pytest.raises(OrchestratorError, match="somebody still uses the disk"):
            run_flush(Writer(), shell("echo target is busy >&2; exit 32"), works)

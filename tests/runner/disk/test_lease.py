"""Leases on disks: they live as long as their reason, and a visit and a lease never miss each other."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.errors import NotNow
from orchestrator.runner.disk import lease
from orchestrator.runner.disk.lease import (
    DiskLeased,
    LeasePurpose,
    end_lease_by_hand,
    end_request,
    find_lease,
    hold_disk,
    lease_by_hand,
    refuse_leased,
    request_disk,
)
from orchestrator.runner.locks import lock_visit
from tests.planners.rotation_world import device, disk

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
RED = disk("red")
HOLDER = """
import sys
from datetime import UTC, datetime
from orchestrator.runner.disk.lease import hold_disk
from tests.planners.rotation_world import disk
with hold_disk(disk("red"), "restore of photos", sys.argv[1], datetime.now(UTC), folder=sys.argv[1] + "/run"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path)


def found(state: str, now: datetime = NOW, *, requests: bool = True) -> LeasePurpose | None:
    told = find_lease(RED, state, now, requests=requests, folder=f"{state}/run")
    return told.kind if told else None


@pytest.fixture
def holder(state: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the disk."""
    os.makedirs(f"{state}/run")
    argv = [sys.executable, "-c", HOLDER, state]
    going = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."})
    assert going.stdout is not None
    assert going.stdout.readline() == b"held\n"
    yield going
    going.kill()
    going.communicate()


def test_a_command_holds_a_disk_as_long_as_it_lives(state: str, holder: subprocess.Popen[bytes]) -> None:
    told = find_lease(RED, state, NOW, folder=f"{state}/run")
    assert told is not None
    assert (told.kind, told.pid, told.purpose) == (LeasePurpose.COMMAND, holder.pid, "restore of photos")
    assert f"by restore of photos (process {holder.pid})" in told.says
    with lock_visit(RED, state, f"{state}/run"), pytest.raises(DiskLeased, match="visits wait until that ends"):
        refuse_leased(RED, state, NOW, requests=False, folder=f"{state}/run")
    with hold_disk(RED, "another restore", state, NOW, folder=f"{state}/run"):  # two may read at once
        pass
    assert found(state) is LeasePurpose.COMMAND
    holder.kill()  # kill -9: nobody tidies up
    holder.wait()
    assert found(state) is None
    assert [name for name in os.listdir(f"{state}/run") if name.startswith("lease-")] == []


def test_a_command_that_ends_well_leaves_nothing(state: str, holder: subprocess.Popen[bytes]) -> None:
    holder.communicate(b"")
    assert (holder.returncode, found(state)) == (0, None)


def test_nothing_is_held_in_the_middle_of_a_visit(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_TRIES", 3)
    with lock_visit(RED, state, f"{state}/run"):
        with (
            pytest.raises(NotNow, match="another visit of disk red"),
            hold_disk(RED, "a restore", state, NOW, folder=f"{state}/run"),
        ):
            raise AssertionError("it is visited")
        assert found(state) is None


def test_who_only_looks_for_a_moment_is_waited_for(state: str) -> None:
    code = "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print('x', flush=True); time.sleep(0.5)"
    os.makedirs(f"{state}/run")
    argv = [sys.executable, "-c", code, f"{state}/run/visit-{RED.identity}"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as short:
        assert short.stdout is not None
        assert short.stdout.readline()
        with hold_disk(RED, "a restore", state, NOW, folder=f"{state}/run"):
            assert found(state) is LeasePurpose.COMMAND


def test_a_lease_that_somebody_took_for_a_left_over_is_published_again(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, done = fcntl.flock, list[str]()

    def flock(descriptor: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not done:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            done.append(path)
            os.unlink(path)
        real(descriptor, how)

    monkeypatch.setattr("fcntl.flock", flock)
    with hold_disk(RED, "a restore", state, NOW, folder=f"{state}/run"):
        assert done
        monkeypatch.undo()
        assert found(state) is LeasePurpose.COMMAND


@pytest.mark.parametrize(
    ("attached", "sequence", "valid"), [(True, "7", True), (False, "7", False), (True, "8", False)]
)
def test_a_disk_attached_by_hand_is_left_alone_until_it_is_let_go_or_pulled_out(
    state: str, monkeypatch: pytest.MonkeyPatch, attached: bool, sequence: str, valid: bool
) -> None:
    now = ["7"]
    monkeypatch.setattr(lease, "device_sequence", lambda _: now[0])
    monkeypatch.setattr(lease, "is_attached", lambda _: attached)
    lease_by_hand(RED, device("red"), state, NOW, folder=f"{state}/run")
    now[0] = sequence
    assert found(state) == (LeasePurpose.BY_HAND if valid else None)
    told = find_lease(RED, state, NOW, folder=f"{state}/run")
    assert told is None or "poolferry disks eject red" in told.hint
    end_lease_by_hand(RED, state, folder=f"{state}/run")
    assert found(state) is None
    end_lease_by_hand(RED, state, folder=f"{state}/run")


def test_a_request_ends_with_the_restore_or_by_itself(state: str) -> None:
    request_disk(RED, "poolferry restore pool tank", state, NOW)
    assert found(state) is LeasePurpose.REQUESTED
    assert found(state, requests=False) is None
    told = find_lease(RED, state, NOW, folder=f"{state}/run")
    assert told is not None
    assert "poolferry restore pool tank" in told.hint
    assert found(state, NOW + timedelta(hours=25)) is None
    assert found(state, NOW - timedelta(days=400)) is None, "the clock was wrong then"
    end_request(RED, state)
    assert found(state) is None
    end_request(RED, state)


@pytest.mark.parametrize("text", ["", "[", "[]", "[" * 50_000, '{"since": "x"}', '{"since": "2027-03-01T12:00:00"}'])
def test_a_cut_note_counts_all_the_same(state: str, text: str) -> None:
    request_disk(RED, "poolferry restore pool tank", state, NOW)
    path = Path(f"{state}/notes/requested-{RED.identity}")
    path.write_text(text)
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    assert found(state) is LeasePurpose.REQUESTED


def test_nothing_is_found_where_nothing_was_ever_written(tmp_path: Path) -> None:
    assert found(str(tmp_path / "none")) is None
    assert not (tmp_path / "none").exists(), "who only looks makes no folder"

"""A host that was taken over answers with garbage, with a flood, and ends well: each run has an end, says which host, and calls hooks."""

import json
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.domain.errors import UnreadableAnswer
from orchestrator.domain.plan import Effect, single_command
from orchestrator.engines.rsync.errors import explain
from orchestrator.engines.rsync.survey import command_runner
from orchestrator.process.executor import LIMIT, PipelineFailed, Reader
from tests.whole.house import House, Ran
from tests.whole.sshd import Sshd

ANSWERS = {
    "nothing": "exit 0",
    "garbage": r'printf "\377\001 garbage\000[[[[\n"; exit 0',
    "a line": 'echo "Your account is locked."; exit 0',
    "yes": "exec yes",
    "zeros": "exec cat /dev/zero",
    "lists in lists": 'exec head -c 1000000 /dev/zero | tr "\\0" "["',
}
SMALL = 600 << 10  # KiB that a run may take, whatever it is told


@pytest.fixture
def house(tmp_path: Path) -> House:
    """An empty house of its own."""
    return House(tmp_path)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Callable[[str], Sshd]]:
    """A host whose every program says this."""
    servers: list[Sshd] = []

    def make(script: str) -> Sshd:
        force = tmp_path / "force"
        force.write_text(f"#!/bin/sh\n{script}\n")
        force.chmod(0o755)
        server = Sshd(tmp_path / "far", more=f"ForceCommand {force}")
        servers.append(server)
        server.start()
        return server

    yield make
    for server in servers:
        server.stop()


def hooked(folder: Path) -> tuple[Path, Path]:
    """A hook, and the file that it writes its event to."""
    hook, called = folder / "hook", folder / "called"
    hook.write_text(f'#!/bin/sh\necho "$POOLFERRY_EVENT" >> {called}\n')
    hook.chmod(0o755)
    return hook, called


def judge(house: House, run: Ran, called: Path, server: Sshd) -> None:
    assert (run.code, run.outcome) == (1, "failed"), run
    told = json.dumps(run.value)
    assert "127.0.0.1" in told, run
    assert "asked to stop" not in told, run
    assert run["cure"], run
    assert called.read_text().split() == ["failed"]
    last = house.call("history", "photos")["runs"][0]
    assert (last["outcome"], last["ended"] is not None) == ("failed", True), last
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < SMALL


@pytest.mark.parametrize("says", ANSWERS)
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.sample(4)
def test_a_far_tree_that_answers_anything(
    house: House, far: Callable[[str], Sshd], tmp_path: Path, says: str, side: str
) -> None:
    server = far(ANSWERS[says])
    house.write("file", "content")
    hook, called = hooked(tmp_path)
    away = {side: server.url(house.source if side == "source" else house.target)}
    house.job(pipe=server.pipe, hooks={"failed": [str(hook)]}, **away)
    judge(house, house.run(), called, server)
    assert not (house.target / "points").exists() or not house.points()


@pytest.mark.parametrize("says", ANSWERS)
@pytest.mark.sample(2)
def test_far_datasets_that_answer_anything(house: House, far: Callable[[str], Sshd], tmp_path: Path, says: str) -> None:
    server = far(ANSWERS[says])
    hook, called = hooked(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "zfs").write_text("#!/bin/sh\nexec sleep 600\n")  # a pool that is slow: what the far host says ends it
    (programs / "zfs").chmod(0o755)
    house.environment["PATH"] = f"{programs}:{house.environment['PATH']}"
    house.job(
        engine="zfs", source=f"{server.url('')}/tank/photos", pipe=server.pipe,
        hooks={"failed": [str(hook)]},
    )  # fmt: skip
    house.write(house.config / "targets.toml", '[place.photos]\ndataset = "vault"\n')
    judge(house, house.run(), called, server)


def test_a_flood_is_ended_and_said() -> None:
    """The same without a network: what a look holds is bounded, and the error names what was too much."""
    command = single_command("yes", effect=Effect.READS, host=None).stages[0]
    with pytest.raises(UnreadableAnswer, match="said more than an answer may hold"):
        command_runner(Reader())(command)
    assert LIMIT <= 64 << 20


def test_a_record_without_an_end_is_ended_and_said() -> None:
    pipeline = single_command(sys.executable, "-c", "while True: print('x' * 65536, end='')", effect=Effect.READS)
    with pytest.raises(PipelineFailed) as caught, Reader().records(pipeline) as records:
        list(records)
    error = explain(caught.value)
    assert isinstance(error, UnreadableAnswer)
    assert "said more" in error.why

"""A request that a gate does not know: the run says on which machine poolferry is older, by what both sides really say."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.errors import Evidence, OrchestratorError, PermissionDenied
from orchestrator.domain.gate import PROTOCOLS, GateTooOld
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.survey.survey import run_read_command
from orchestrator.process.executor import LIMIT, LONGEST_LOOK, Reader
from orchestrator.process.pipeline import PipelineResult

HOST = Host(user="root", name="server", port=None)
CHECKOUT = Path(__file__).parents[4]
STRANGE = commands.script_command(
    "survey.sh", "of", "another", "version", effect=Effect.READS, where=commands.CommandHost(host=HOST)
)


NEWER = (
    "the gate at root@server is newer than this poolferry: poolferry gate laptop: refused: the machine of this gate knows version 7 and 8 "
    "of what is said through a gate, the one that asks 1 and 2 and 3 and 4: upgrade poolferry on the one that asks"
)


class ThroughGate(Reader):
    """A reader whose far commands reach a real gate, which may be that of another version."""

    def __init__(self, folder: Path, before: str) -> None:
        super().__init__()
        (folder / "config/gates").mkdir(parents=True)
        (folder / "state").mkdir()
        (folder / "config/gates/laptop.toml").write_text('receives = "vault/in"\n')
        program = folder / "program"
        program.write_text(
            f"import orchestrator.domain.gate as gate\n{before}\nfrom orchestrator.__main__ import program\nprogram()\n"
        )
        words = ("gate", "laptop", "--config", str(folder / "config"), "--state", str(folder / "state"))
        self.argv: Sequence[str] = (sys.executable, str(program), *words)
        self.asked = 0

    def read(self, pipeline: Pipeline, *, limit: int = LIMIT, timeout: Seconds = LONGEST_LOOK) -> PipelineResult:
        del limit, timeout
        self.asked += 1
        line = ssh_argv(pipeline.stages[0])[-1]
        variables = {**os.environ, "PYTHONPATH": str(CHECKOUT), "SSH_ORIGINAL_COMMAND": line, "SSH_CONNECTION": ""}
        done = subprocess.run(self.argv, env=variables, capture_output=True, check=False)
        said = done.stderr.decode("utf-8", "replace")
        return PipelineResult(exits=(done.returncode,), stdout=done.stdout, last_output=(said,))


def refused(folder: Path, before: str, asked: Command = STRANGE) -> tuple[OrchestratorError, int]:
    reader = ThroughGate(folder, before)
    with pytest.raises(OrchestratorError) as raised:
        run_read_command(reader, asked)
    return raised.value, reader.asked


@pytest.mark.parametrize(
    ("before", "said", "upgrades"),
    [
        ("gate.PROTOCOLS = (1, 2)", "the gate at root@server is older than this poolferry", "root@server"),
        ("gate.HELLO = ''", "the gate at root@server is older than this poolferry", "root@server"),
        ("gate.PROTOCOLS = (7, 8)", NEWER, "this machine"),
    ],
)
def test_the_older_side_is_named(tmp_path: Path, before: str, said: str, upgrades: str) -> None:
    error, asked = refused(tmp_path, before)
    assert isinstance(error, GateTooOld)
    assert said in error.why, error
    assert (error.hint, asked) == (f"upgrade poolferry on {upgrades}", 2)


def test_a_refusal_of_the_same_version_stays_what_it_is(tmp_path: Path) -> None:
    error, asked = refused(tmp_path, "")
    assert (type(error), asked) == (PermissionDenied, 2)
    destroy = commands.zfs_command("destroy", "vault/in/x", effect=Effect.READS, where=commands.CommandHost(host=HOST))
    error, asked = refused(tmp_path / "other", "gate.PROTOCOLS = (1,)", destroy)
    assert (asked, "can only add" in error.why) == (1, True), error


class Scripted(Reader):
    """A reader that refuses the first request, and answers the second as it is told."""

    def __init__(self, result: PipelineResult) -> None:
        super().__init__()
        refusal = "poolferry gate laptop: refused: it was asked for `survey.sh of`, which is no question that this version knows"
        self.results = [PipelineResult(exits=(126,), last_output=(refusal,)), result]

    def read(self, pipeline: Pipeline, *, limit: int = LIMIT, timeout: Seconds = LONGEST_LOOK) -> PipelineResult:
        del pipeline, limit, timeout
        return self.results.pop(0)


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (PipelineResult(exits=(0,)), PermissionDenied),  # no gate: nothing is said
        (PipelineResult(exits=(255,), last_output=("Connection refused",)), PermissionDenied),
        (PipelineResult(exits=(0,), stdout=b'{"protocols": [9]}\n'), GateTooOld),
        (PipelineResult(exits=(0,), stdout=b'{"protocols": [4, 5]}\n'), PermissionDenied),
    ],
)  # fmt: skip
def test_what_is_no_greeting_changes_no_refusal(result: PipelineResult, error: type[OrchestratorError]) -> None:
    with pytest.raises(OrchestratorError) as raised:
        run_read_command(Scripted(result), STRANGE)
    assert type(raised.value) is error
    assert max(PROTOCOLS) == 4


def test_what_fails_here_asks_no_gate() -> None:
    here = Command(argv=("zfs", "list"), effect=Effect.READS)
    reader = Scripted(PipelineResult(exits=(0,)))
    with pytest.raises(PermissionDenied) as raised:
        run_read_command(reader, here)
    assert isinstance(raised.value.evidence, Evidence)
    assert len(reader.results) == 1

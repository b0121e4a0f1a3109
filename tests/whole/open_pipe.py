"""Two ends of an mbuffer connection on one machine, beside a real sshd: the engine's own commands, files in place of snapshots."""

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Bytes
from orchestrator.engines.zfs.errors.explain import explain
from orchestrator.engines.zfs.model import ActionPlan, FullSend, SshAddresses
from orchestrator.engines.zfs.plan import steps, transport
from orchestrator.process.executor import PipelineResult, Writer, pipeline_failure
from tests.engines.zfs.sides import ASKED, COPY, FLAGS, SOURCE, A, dataset, job, side, world
from tests.whole.house import wait_until
from tests.whole.sshd import Sshd

MIB = 1 << 20
# Says what zfs says of a stream that broke off, and keeps what came.
_ZFS = """#!/bin/sh
for last; do :; done
case $1 in
send) printf "size\\t%s\\n" "$(stat -c %s "{root}/sent")" >&2; exec cat "{root}/sent";;
receive) dd bs=64k of="{root}/received" 2>/dev/null || exit
[ "$(tail -c 3 "{root}/received")" = END ] || {{ echo "cannot receive: checksum mismatch or incomplete stream" >&2; exit 1; }};;
esac
"""


class Ends:
    """Two ends on one machine. `sent`, `received`: what stands for snapshots."""

    def __init__(self, folder: Path, server: Sshd) -> None:
        self.sent, self.received = folder / "sent", folder / "received"
        self.host = Host(name="127.0.0.1", user=server.user, port=server.port)
        self.options = ("-F", str(server.folder / "client"))
        self.ports: set[str] = set()

    def fill(self, size: int) -> None:
        self.sent.write_bytes(os.urandom(size - 3) + b"END")

    def pipeline(self, *, pulls: bool, address: str = "127.0.0.1", **pipe: Any) -> Pipeline:
        """Return what the engine makes of a first send."""
        far = {"wire": SshAddresses(here=address, there=address)}
        source = Location(path=SOURCE.path, host=self.host if pulls else None)
        target = Location(path=COPY.path, host=None if pulls else self.host)
        seen = world(side(source, dataset("", A), **(far if pulls else {})), side(target, **({} if pulls else far)))
        told = job(
            source=source,
            place=target.host,
            pipe=PipeOptions(**{"transport": "mbuffer", "buffer": Bytes(4 * MIB), **pipe}),
        )
        send = FullSend(dataset="", snapshot=A, flags=FLAGS, why="first")
        # The port follows from the time: not that of a test beside this one.
        later = timedelta(seconds=int.from_bytes(os.urandom(3)))
        ((step,),) = steps.build_steps(told, seen, ActionPlan(stages=((send,),)), replace(ASKED, now=ASKED.now + later))
        assert isinstance(step.work, Pipeline)
        self.ports |= {word for stage in step.work.stages for word in stage.argv if is_port(word)}
        return step.work

    def stream(self, pipeline: Pipeline, **more: Any) -> PipelineResult:
        return Writer(ssh_options=self.options).stream(pipeline, on_bytes=lambda _: None, **more)

    def explained(self, pipeline: Pipeline, result: PipelineResult) -> OrchestratorError:
        assert not result.well
        return explain(pipeline_failure(pipeline, result, self.options))

    @property
    def equal(self) -> bool:
        return self.sent.read_bytes() == self.received.read_bytes()


@contextlib.contextmanager
def open_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    """Nothing of a stream is left behind, whatever happened to it."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "zfs").write_text(_ZFS.format(root=tmp_path))
    (tools / "zfs").chmod(0o755)
    path = f"{tools}:/usr/local/bin:/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    server = Sshd(tmp_path / "sshd", path=path)
    server.start()
    both = Ends(tmp_path, server)
    yield both
    wait_until(lambda: not server.sessions())
    server.stop()
    wait_until(lambda: not ours(tmp_path, both.ports))


def is_port(word: str) -> bool:
    """Return whether the word is a port that the engine may choose."""
    return word.isdigit() and transport.FIRST_PORT <= int(word) <= transport.LAST_PORT


def ours(folder: Path, ports: Iterable[str]) -> list[str]:
    """Processes that work on the files of this test, or listen on a port of its streams."""
    told = subprocess.run(("ps", "-eo", "pid=,args="), capture_output=True, text=True, check=True).stdout
    return [line for line in told.splitlines() if f"{folder}/" in line] + listening(ports)


def listening(ports: Iterable[str]) -> list[str]:
    """Return who listens on one of these ports."""
    told = subprocess.run(("ss", "-Hltnp"), capture_output=True, text=True, check=True).stdout
    return [line for line in told.splitlines() if any(f":{port} " in line for port in ports)]

"""mbuffer's own connection: who may use it, which port it gets, and its commands word for word."""

import re
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Effect, Pipeline, Refusal
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.model import ActionPlan, FullSend, MbufferConnection, SshAddresses
from orchestrator.engines.zfs.plan import plan, steps, transport
from orchestrator.engines.zfs.survey.parse import make_side, parse_survey
from tests.engines.zfs.sides import ASKED, COPY, FLAGS, HOST, NOW, SOURCE, A, dataset, job, side, world

OPEN = PipeOptions(transport="mbuffer")
WIRE = SshAddresses(here="10.0.0.1", there="10.0.0.2")


def seen(*, pulls: bool = False, wire: SshAddresses | None = WIRE, mbuffer: tuple[bool, bool] = (True, True)) -> Any:
    """A world of two machines."""
    source = Location(path=SOURCE.path, host=HOST if pulls else None)
    target = Location(path=COPY.path, host=None if pulls else HOST)
    far: tuple[SshAddresses | None, SshAddresses | None] = (wire, None) if pulls else (None, wire)
    return world(
        side(source, dataset("", A), wire=far[0], mbuffer=mbuffer[0]),
        side(target, wire=far[1], mbuffer=mbuffer[1], above=frozenset({"vault"})),
    )


def asked_for(*, pulls: bool = False, pipe: PipeOptions = OPEN) -> Any:
    return job(
        source=Location(path=SOURCE.path, host=HOST if pulls else None), place=None if pulls else HOST, pipe=pipe
    )


def refused(wire: SshAddresses | None = WIRE, *, pulls: bool = False, pipe: PipeOptions = OPEN, **more: Any) -> str:
    told = plan.decide_actions(asked_for(pulls=pulls, pipe=pipe), seen(pulls=pulls, wire=wire, **more), ASKED)
    return f"{told.why}; {told.hint}" if isinstance(told, Refusal) else ""


@pytest.mark.parametrize("pulls", [False, True])
def test_public_addresses_need_consent(*, pulls: bool) -> None:
    assert not refused(pulls=pulls)
    for wire in (replace(WIRE, here="198.51.100.1"), replace(WIRE, there="198.51.100.1")):
        assert "198.51.100.1 is a public address" in refused(wire, pulls=pulls)
        assert not refused(wire, pulls=pulls, pipe=PipeOptions(transport="mbuffer", public_transport=True))
        assert not refused(wire, pulls=pulls, pipe=PipeOptions())


def test_what_mbuffer_cannot_do_is_refused() -> None:
    assert 'ssh-options = ["-4"]' in refused(SshAddresses(here="fe80::1%eth0", there="fe80::2%eth0"))
    assert not refused(SshAddresses(here="fd00::1", there="fd00::2"))
    assert "does not say by which address" in refused(None)
    assert "not installed on root@backup" in refused(mbuffer=(True, False))
    assert "not installed on this machine" in refused(mbuffer=(False, True))


def test_between_pools_of_one_machine_nothing_is_opened() -> None:
    told = job(pipe=OPEN)
    assert transport.refuse_transport(told, side(SOURCE, mbuffer=False), side(COPY)) is None
    assert transport.choose_connections(told, world(), NOW) is None


@pytest.mark.parametrize("pulls", [False, True])
def test_each_stream_gets_a_port_and_each_look_others(*, pulls: bool) -> None:
    def first(seconds: int) -> list[MbufferConnection]:
        made = transport.choose_connections(asked_for(pulls=pulls), seen(pulls=pulls), NOW + timedelta(seconds=seconds))
        assert made
        return list(islice(made, 5000))

    some, others = first(0), first(1)
    ends = ("10.0.0.2", "10.0.0.1") if pulls else ("10.0.0.1", "10.0.0.2")
    assert {(line.sender, line.receiver) for line in some} == {ends}
    ports = [line.port for line in some]
    assert len(set(ports[:4536])) == 4536
    assert (min(ports), max(ports)) == (61000, 65535)
    assert ports[0] != others[0].port


def made(*, pulls: bool, **pipe: Any) -> Pipeline:
    action = FullSend(dataset="", snapshot=A, flags=FLAGS, why="first")
    told = asked_for(pulls=pulls, pipe=PipeOptions(**{"transport": "mbuffer", **pipe}))
    ((step,),) = steps.build_steps(told, seen(pulls=pulls), ActionPlan(stages=((action,),)), ASKED)
    assert isinstance(step.work, Pipeline)
    return step.work


def values(pipeline: Pipeline, stage: int) -> list[str]:
    """Return what a script gets, without the port, which is another one in each look."""
    name, *words = pipeline.stages[stage].argv[3:]
    return [
        name,
        *(word for word in words if not (word.isdigit() and transport.FIRST_PORT <= int(word) <= transport.LAST_PORT)),
    ][:9]


def test_a_push_word_for_word() -> None:
    pipeline = made(pulls=False, rate_limit=Bytes(1 << 20), stall_after=Seconds(100), buffer=Bytes(8 << 20))
    assert [stage.host for stage in pipeline.stages] == [None, None, HOST]
    assert " ".join(pipeline.stages[0].argv) == "zfs send -PLcep tank/photos@a"
    assert values(pipeline, 1) == ["connect.sh", "10.0.0.2", "8192k", "200", "1048576", "cat"]
    words = ["listen.sh", "10.0.0.1", "10.0.0.2", "200", "buffered", "8192k", "receive", "-s", "-u"]
    assert values(pipeline, 2) == words
    assert [stage.effect for stage in pipeline.stages] == [Effect.READS, Effect.READS, Effect.WRITES]
    assert pipeline.counts == 0


def test_a_pull_word_for_word() -> None:
    pipeline = made(pulls=True, rate_limit=Bytes(1 << 20), buffer=Bytes(8 << 20), stall_after=Seconds(1))
    assert [stage.host for stage in pipeline.stages] == [HOST, None, None]
    assert values(pipeline, 0) == [
        "connect.sh",
        "10.0.0.1",
        "8192k",
        "30",
        "",
        "zfs",
        "send",
        "-PLcep",
        "tank/photos@a",
    ]
    assert values(pipeline, 1)[:5] == ["listen.sh", "10.0.0.2", "10.0.0.1", "30", "mbuffer"]
    assert pipeline.stages[1].argv[-2:] == ("-r", "1048576")
    assert pipeline.stages[2].argv[:2] == ("zfs", "receive")
    assert pipeline.counts == 1
    # A dry send of the same is weighed.
    assert commands.send_arguments(pipeline.stages[0]) == ("-PLcep", "tank/photos@a")


def test_no_secret_is_on_a_command_line() -> None:
    """Everybody on a machine can read those. The connecting end makes them, when it runs."""
    for pulls in (False, True):
        assert made(pulls=pulls) == made(pulls=pulls)
        assert not re.search(r"[0-9a-f]{16}", str(made(pulls=pulls)))


def test_the_look_tells_how_ssh_came() -> None:
    lines = ["=here 0 no mbuffer 2.3.9", "=wire 10.0.0.1 50000 10.0.0.2 22", "=pool 7 ABSENT"]
    told = parse_survey(line.encode() for line in lines)
    assert told.wire == make_side(told, COPY).wire == WIRE
    assert parse_survey(line.encode() for line in (lines[0], lines[2])).wire is None

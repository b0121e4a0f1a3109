"""Test what `check --system` says of perl, which only an mbuffer connection needs, by scripted answers."""

import pytest

from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Location
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.engines.zfs.system_check import check_system
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.zfs.sides import COPY, HOST, SOURCE, job

LOOK = b"=here 0 no mbuffer 2.3.9\n=wire 10.0.0.1 50000 10.0.0.2 22\n=pool 7 SUSPENDED\n"
NO_PERL = scripted_result(exits=(127,), words="env: 'perl': No such file or directory")


def found(transport: str, *, here: PipelineResult, there: PipelineResult) -> dict[str, SystemCheckResult]:
    """The advice by its subject, of a job that sends to a host."""
    told = job(source=SOURCE, place=HOST, pipe=PipeOptions(transport=transport))
    script = [
        (lambda pipeline: pipeline.stages[0].argv[0] == "perl" and pipeline.stages[0].host is None, here),
        (lambda pipeline: pipeline.stages[0].argv[0] == "perl", there),
        (lambda _: True, scripted_result(LOOK)),
    ]
    return {each.subject: each for each in check_system(told, ScriptedExecutor(script))}


@pytest.mark.parametrize("missing", ["here", f"on {HOST}"])
def test_perl_is_missed_on_either_side(missing: str) -> None:
    told = {f"perl {where}": NO_PERL if where == missing else scripted_result() for where in ("here", f"on {HOST}")}
    advice = found("mbuffer", here=told["perl here"], there=told[f"perl on {HOST}"])
    assert {subject: each.good for subject, each in advice.items() if subject in told} == {
        subject: subject != f"perl {missing}" for subject in told
    }
    lacking = advice[f"perl {missing}"]
    assert lacking.hinders
    assert "apt install perl-base" in lacking.text


def test_through_ssh_nobody_asks_for_perl() -> None:
    assert not [subject for subject in found("ssh", here=NO_PERL, there=NO_PERL) if subject.startswith("perl")]


def test_a_host_that_does_not_answer_lacks_nothing() -> None:
    gone = scripted_result(exits=(255,), words="ssh: connect to host backup port 22: Connection refused")
    target = found("mbuffer", here=scripted_result(), there=gone)[f"target {Location(path=COPY.path, host=HOST)}"]
    assert target.text.startswith("the host did not answer")


WELL = LOOK.replace(b"SUSPENDED", b"ONLINE") + b"=above\nvault\t100\toff\n=datasets\n=absent\n=end\n"


BY_GATE = "poolferry gate laptop: refused: append-only: x"


@pytest.mark.parametrize(
    ("user", "rights", "said", "tells"),
    [
        (0, "", "cannot open 'x': dataset does not exist", "this key can destroy its own copies; `poolferry setup gate` there"),
        (0, "", "poolferry gate laptop: refused: append-only: x", "append-only: tried to destroy, and the gate laptop refused"),
        (7, "destroy,receive", "could not find any snapshots", "this key can destroy its own copies"),
        (7, "receive", "could not find any snapshots", "by `zfs receive -F`"),
        (7, "receive:append,create", "could not find any snapshots", ""),
        (7, "receive:append,create", BY_GATE, "the gate laptop refused; zfs refuses it, too, and `receive -F`"),
        (7, "receive,create", BY_GATE, "wall: as root, zfs unallow ferry receive vault && zfs allow ferry receive:append vault"),
        (7, "destroy,receive", BY_GATE, "so the gate is the only wall: as root, zfs unallow ferry destroy vault"),
        (7, "create", BY_GATE, "append-only: tried to destroy, and the gate laptop refused"),
    ],
)  # fmt: skip
def test_what_a_key_may_do_to_the_copies_is_tried(user: int, rights: str, said: str, tells: str) -> None:
    heading = "---- Permissions on vault -----------------------"
    delegated = (
        f"=user ferry\n=groups ferry\n=readonly off\n=resumable active\n=at vault/x\n{heading}\n\tuser ferry {rights}\n"
    )
    script = [
        (lambda pipeline: "destroy" in pipeline.stages[0].argv, scripted_result(exits=(1,), words=said)),
        (lambda pipeline: "rights.sh" in pipeline.stages[0].argv, scripted_result(delegated.encode())),
        (lambda _: True, scripted_result(WELL.replace(b"=here 0", b"=here %d" % user))),
    ]
    advice = {
        each.subject: each.text for each in check_system(job(source=SOURCE, place=HOST), ScriptedExecutor(script))
    }
    assert tells in advice.get(f"key at {HOST}", ""), advice
    assert (f"key at {HOST}" in advice) == bool(tells)


def test_a_pool_that_was_imported_read_only_is_told_on_either_side() -> None:
    """Seen: nothing was said of the source's, and the run failed at its first bookmark."""
    may = b"=user root\n=groups root\n=readonly on\n=resumable active\n=at x\n"
    script = [
        (lambda pipeline: "rights.sh" in pipeline.stages[0].argv, scripted_result(may)),
        (lambda _: True, scripted_result(WELL)),
    ]
    advice = {each.subject: each for each in check_system(job(source=SOURCE), ScriptedExecutor(script))}
    source, target = (advice[f"pool {pool} here"] for pool in ("tank", "vault"))
    assert (source.hinders, target.hinders) == (True, True)
    assert source.text == (
        "is imported read-only, so no bookmark can be made there: zpool export tank, then zpool import tank; or, to copy it all the same: "
        "poolferry run photos --allow no-bookmarks"
    )
    assert target.text == "is imported read-only, so nothing can be copied: zpool export vault, then zpool import vault"

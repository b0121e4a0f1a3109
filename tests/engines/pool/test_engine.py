"""The engine's face: options that fit, confirmations, errors, and clear words where there is no copy."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.errors import (
    HostUnreachable,
    NotNow,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    SourceMissing,
    Stalled,
    Stopped,
    Unexplained,
    UnreadableAnswer,
    VerificationFailed,
)
from orchestrator.domain.job import Limit, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.source_identity import SOURCE_IDENTITY
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.engine import Engine, StageResults, implements
from orchestrator.engines.contract.trees import TreeEngine
from orchestrator.engines.pool import ENGINE
from orchestrator.engines.pool.model import ScrubState
from orchestrator.engines.pool.options import PoolOptions, parse_share
from orchestrator.process.pipeline import StopReason
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.pool.builders import ASKED, DAY, FAR, ROOT, failed, job, sample

SOUND_AT = datetime.fromtimestamp(1795200392, UTC)
ABSENT = scripted_result(exits=(1,), words="cannot open 'tank': no such pool")


def reader(output: bytes) -> ScriptedExecutor:
    return ScriptedExecutor([(lambda _: True, scripted_result(output))])


def test_it_keeps_the_contract() -> None:
    engine: Engine = ENGINE
    assert (engine.name, engine.stays, implements(engine, TreeEngine)) == ("pool", True, False)


def test_the_look_is_one_command_here_or_there() -> None:
    for source in (ROOT, FAR):
        requested = reader(sample("sound-2.3"))
        seen = ENGINE.survey(job(source), ASKED, requested)
        assert [len(requested.requested), seen.root, requested.requested[0].stages[0].host] == [1, source, source.host]
    (point,) = ENGINE.points(job(), reader(sample("sound-2.3")))
    assert (point.name, point.taken) == ("tank", SOUND_AT)


def test_a_pool_that_is_not_there() -> None:
    with pytest.raises(SourceMissing):
        ENGINE.survey(job(), ASKED, ScriptedExecutor([(lambda _: True, ABSENT)]))
    with pytest.raises(NotNow):
        ENGINE.survey(job(may_be_away=True), ASKED, ScriptedExecutor([(lambda _: True, ABSENT)]))


def test_a_pool_with_another_name_is_known_by_its_guid() -> None:
    known = ENGINE.identity(ENGINE.survey(job(), ASKED, reader(sample("sound-2.3"))))
    guid = known.split()[1]
    assert (known, ENGINE.identity_of_kit("{}"), ENGINE.waiting(None)) == (f"0 {guid} tank", "", ())  # type: ignore[arg-type]
    for identity, found in (
        (known, True),
        ("", False),
        (f"0 0 {ROOT}", False),
        (f"0 {guid} other", False),
        (f"0 9 {ROOT}", False),
    ):
        answers = ScriptedExecutor(
            [
                (
                    lambda asked: "find-datasets.sh" in asked.stages[0].argv,
                    scripted_result(f"{guid}\tlake\n=end\n".encode()),
                ),
                (lambda _: True, ABSENT),
            ]
        )
        with pytest.raises(SourceMissing) as raised:
            ENGINE.survey(job(), replace(ASKED, remembered={SOURCE_IDENTITY: identity}), answers)
        assert (raised.value.why == "the pool tank is imported as lake now, by its guid") is found, identity
        if found:
            assert raised.value.hint == (
                f'to go on under that name: write source = "lake" into {job().file}; or give the former one back: '
                "zpool export lake && zpool import lake tank"
            )


@pytest.mark.parametrize("output", [b"", b"1795187460\n2.3.2\n=list\n", sample("sound-2.3").replace(b"=end", b"")])
def test_half_an_answer_is_never_taken_for_a_whole_one(output: bytes) -> None:
    with pytest.raises(OrchestratorError, match="cannot be read"):
        ENGINE.survey(job(), ASKED, reader(output))


def test_a_scrub_is_proved_by_looking() -> None:
    def confirm(name: str, *, paused: bool = False, ago: float = 0) -> None:
        confirmation = ScrubState(root=ROOT, since=SOUND_AT - timedelta(seconds=ago), paused=paused)
        ENGINE.confirm(StageResults(confirmations=(confirmation,)), reader(sample(name)))

    confirm("sound-2.3", ago=DAY)  # it has ended meanwhile
    confirm("scrubbing-2.3")
    confirm("paused-2.3", paused=True)
    for name, paused in (
        ("sound-2.3", False),
        ("paused-2.3", False),
        ("scrubbing-2.3", True),
        ("resilvering-2.3", False),
    ):
        with pytest.raises(VerificationFailed):
            confirm(name, paused=paused)


def test_keys_that_do_not_fit_together() -> None:
    def wrong(path: str = "tank", **options: object) -> list[str]:
        found = ENGINE.mistakes(PoolOptions(**options), SourceTree(root=Location(path=path)), ROOT, VerifyRules())  # type: ignore[arg-type]
        return [key for key, _, _ in found]

    assert wrong() == []
    assert wrong("tank/photos") == ["source"]
    assert wrong(capacity_fail=Limit(number=80, percent=True)) == ["pool.capacity-fail"]
    assert wrong(scrub_every=41 * DAY) == ["pool.scrub-late"]
    assert parse_share("85%") == Limit(number=85, percent=True)
    for text in ("85", "101%", "x"):
        with pytest.raises(ValueError, match="a share"):
            parse_share(text)


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        ("sh: 1: zpool: not found", 127, ProgramMissing),
        ("The ZFS modules are not loaded.\nTry running '/sbin/modprobe zfs' as root to load them.", 1, ProgramMissing),
        ("cannot open 'tank': no such pool", 1, SourceMissing),
        ("cannot scrub tank: currently resilvering", 1, OutsideError),
        ("cannot scrub 'tank': permission denied", 1, PermissionDenied),
        ("root@master: Permission denied (publickey).", 255, PermissionDenied),
        ("cannot scrub tank: pool is read-only", 1, PermissionDenied),
        ("ssh: Could not resolve hostname master", 255, HostUnreachable),
        ("client_loop: send disconnect: Broken pipe", 255, HostUnreachable),
        ("cannot scrub tank: a new thing", 1, Unexplained),
    ],
)
def test_what_fails_says_why(words: str, code: int, kind: type[OutsideError]) -> None:
    error = ENGINE.explain(failed(words, code))
    assert type(error) is kind
    assert words.splitlines()[0] in error.why
    assert error.hint


def test_what_was_ended() -> None:
    assert isinstance(ENGINE.explain(failed(stopped=StopReason.TIMED_OUT)), Stalled)
    assert isinstance(ENGINE.explain(failed(stopped=StopReason.STOPPED)), Stopped)
    flooded = ENGINE.explain(failed(stopped=StopReason.FLOODED))
    assert isinstance(flooded, UnreadableAnswer)
    assert "lost data" in flooded.hint


def test_advice_of_check() -> None:
    version, pool = ENGINE.advise(job(), reader(sample("sound-2.3")))
    assert (version.good, pool.good) == (True, True)
    _, *found = ENGINE.advise(job(), reader(sample("unavail-2.3")))
    assert {(each.good, each.hinders) for each in found} == {(False, False)}
    (away,) = ENGINE.advise(job(), ScriptedExecutor([(lambda _: True, ABSENT)]))
    assert (away.good, away.hinders) == (False, True)

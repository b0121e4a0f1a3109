"""`pins` as people and scripts see it; on real pools it is tried in the lab."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Effect, Step, single_command
from orchestrator.engines.contract.holds import Pin, PinReport
from orchestrator.views.holds import pins_lines, pins_value
from tests.ferry import Ferry

NOW = datetime(2026, 3, 4, tzinfo=UTC)
KEPT = Pin(
    kind="bookmark", at=Location(path="tank/photos#poolferry_1", host=Host(name="nas")), target="vault",
    since=NOW - timedelta(hours=2), bytes=0, job="photos", why="the next increment may start from it",
)  # fmt: skip
UNWANTED = Pin(
    kind="hold", at=Location(path="tank/old@a"), target="00000000000000ff", since=None, bytes=4096, job=None,
    why="no job copies this dataset any more",
)  # fmt: skip
LET_GO = Step(
    action="release 1 snapshot", why="no job needs them any more", worker="main", expected=None,
    work=single_command("zfs", "release", "poolferry_ff", "tank/old@a", effect=Effect.WRITES),
)  # fmt: skip


def test_the_lines() -> None:
    found = PinReport(pins=(KEPT, UNWANTED), unseen=((Location(path="away"), "the pool is not imported"),))
    lines = pins_lines(found, [LET_GO], let_go=False, now=NOW, again="poolferry pins --let-go")
    assert [line.split()[:1] for line in lines[:3]] == [["KIND"], ["bookmark"], ["hold"]]
    assert "2 h ago  nothing  photos     ssh://nas/tank/photos%23poolferry_1" in lines[1]
    assert "unknown  4.0 KiB  nobody     tank/old@a" in lines[2]
    assert lines[3:] == [
        "not looked at: away: the pool is not imported",
        "1 pin no job needs any more; `poolferry pins --let-go` would do this:",
        "  release 1 snapshot",
    ]
    assert len(pins_lines(found, [LET_GO], let_go=True, now=NOW, again="")) == 4
    assert pins_lines(PinReport(pins=()), [], let_go=False, now=NOW, again="") == ["nothing of ours is pinned"]


def test_the_value() -> None:
    value = pins_value(PinReport(pins=(KEPT, UNWANTED)), [LET_GO], [])
    assert [(each["pool"], each["wanted"], each["since"], each["bytes"]) for each in value["pins"]] == [
        ("vault", True, "2026-03-03T22:00:00Z", 0), ("00000000000000ff", False, None, 4096),
    ]  # fmt: skip
    assert value["lets_go"][0]["commands"] == ["zfs release poolferry_ff tank/old@a"]


def test_without_datasets_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    ferry = Ferry(tmp_path)
    ferry.job()
    ended = ferry.run("pins", "--json")
    assert (ended.code, ended.value["pins"], ended.value["runs"]) == (0, [], [])
    wrong = ferry.run("pins", "--job", "photos")
    assert (wrong.code, "copies no datasets" in wrong.err) == (2, True)
    assert ferry.run("pins", "--job", "nope").code == 2

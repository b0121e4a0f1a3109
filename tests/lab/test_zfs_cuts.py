"""A first copy that is cut, wherever and however, goes on from where it was, and is then equal.

Changes things: in virtual machines.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab.common import LabError, Running
from tests.lab.cutting import PATIENCE, Chain, Copying, answer, kill, pace
from tests.lab.laboratory import Pair

pytestmark = pytest.mark.virtual

LONG = Chain(a=20, b=5, c=5)  # of what waits in the pipe while a dead link is noticed, it is more than ten times as much


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A run under way, and how to end it."""

    pair: Pair
    copying: Copying
    run: Running


# When.


def early(copying: Copying) -> None:
    copying.wait_for(0.1)
    copying.wait_for_token()


def midway(copying: Copying) -> None:
    copying.wait_for(0.35)


def late(copying: Copying) -> None:
    copying.wait_for(0.9)


def between_two_sends(copying: Copying) -> None:
    copying.wait_for_snapshot("a")


def between_two_snapshots(copying: Copying) -> None:
    copying.wait_for_snapshot("b")


# What.


def the_link(cut: Cut) -> None:
    """Mended once the stream is seen to be dead."""
    cut.pair.cut()
    cut.pair.master.sh("while pgrep -f '^ssh .* receive|^zfs receive'; do sleep 0.1; done", seconds=PATIENCE)
    cut.pair.mend()


def poolferry_itself(cut: Cut) -> None:
    cut.run.kill(9)


def the_sending_zfs(cut: Cut) -> None:
    kill(cut.copying.sender, "^zfs send")


def mbuffer_here(cut: Cut) -> None:
    kill(cut.pair.master, "^mbuffer")


def ssh(cut: Cut) -> None:
    kill(cut.copying.at, "^ssh[: ]")


def mbuffer_there(cut: Cut) -> None:
    kill(cut.pair.backup, "^mbuffer")


def the_receiving_zfs(cut: Cut) -> None:
    kill(cut.copying.receiver, "^zfs receive")


def the_power_of_the_master(cut: Cut) -> None:
    cut.pair.master.power_cut()
    cut.pair.master.boot_again()


def the_power_of_the_backup(cut: Cut) -> None:
    """The same disk in the same machine, which is up again at once."""
    backup = cut.pair.backup
    backup.sh("zpool sync vault")  # a pool writes out each 5 seconds, and this whole stream takes not many more
    backup.power_cut()
    assert backup.template is not None
    backup.restore(backup.template)
    backup.plug(backup.disks["vault"])
    backup.sh("zpool import vault")


# Whether what was cut is taken up by the same run, or by the next one after the one that failed, or that just ended.
SAME, NEXT, KILLED = "the same run", "the next run", "the next run after one without an end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """When what was cut, and who goes on."""

    when: Callable[[Copying], None]
    what: Callable[[Cut], None]
    goes_on: str
    chain: Chain = Chain()
    pulls: bool = False

    def __str__(self) -> str:
        how = "pulled, " if self.pulls else ""
        return f"{how}{self.when.__name__}, {self.what.__name__}: {self.goes_on}".replace("_", " ")


ROWS = (
    Row(when=midway, what=the_link, goes_on=SAME, chain=LONG),
    Row(when=late, what=the_link, goes_on=NEXT, pulls=True),
    Row(when=early, what=poolferry_itself, goes_on=KILLED),
    Row(when=midway, what=the_sending_zfs, goes_on=SAME),
    Row(when=late, what=mbuffer_here, goes_on=SAME),
    Row(when=between_two_snapshots, what=ssh, goes_on=SAME),
    Row(when=midway, what=mbuffer_there, goes_on=NEXT),
    Row(when=between_two_sends, what=the_receiving_zfs, goes_on=SAME),
    Row(when=midway, what=the_power_of_the_master, goes_on=KILLED),
    Row(when=midway, what=the_power_of_the_backup, goes_on=SAME, chain=LONG),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_copy_that_is_cut_goes_on(pair: Pair, row: Row) -> None:
    sender, receiver = pair
    rate = "" if row.chain is LONG else pace(pair)
    copying = Copying(
        sender, receiver, pulls=row.pulls, chain=row.chain, rate=rate, attempts=6 if row.goes_on == SAME else 1
    )
    run = copying.begin()
    row.when(copying)
    row.what(Cut(pair=pair, copying=copying, run=run))
    runs = [1] if row.goes_on == SAME else [1, 2]
    first = ended(run)
    if row.goes_on != SAME:
        assert first.get("outcome", "none") == ("failed" if row.goes_on == NEXT else "none"), first
        copying.run()
    stories = [copying.story(number) for number in runs]
    moved = sum(story["moved_bytes"] or 0 for story in stories)
    carried = copying.carried()
    print("RATIO", row, "moved", moved / copying.stream, "carried", carried / copying.stream)
    require_went_on(stories, KILLED if row.goes_on == KILLED else None)
    assert moved <= 1.1 * copying.stream
    assert carried <= 1.1 * copying.stream
    copying.require_equal()
    copying.require_nothing_left()


def ended(run: Running) -> dict[str, Any]:
    """What a run said; nothing where it was killed, or lost its machine."""
    with contextlib.suppress(LabError):
        found = run.wait(PATIENCE)
        return answer(found) if found.out else {}
    return {}


def require_went_on(stories: list[dict[str, Any]], killed: str | None) -> None:
    """History says that it was resumed, and why."""
    if killed:
        assert stories[0]["outcome"] == "interrupted", stories[0]
    last = stories[-1]
    assert (last["outcome"], last["resumed"]) == ("done", True), last
    steps = [step for attempt in last["attempt"] for step in attempt["steps"]]
    resumed = [step["why"] for step in steps if "the rest" in step["does"]]
    assert resumed, steps
    assert all("was cut; " in why and why.endswith("of it are there") for why in resumed), resumed

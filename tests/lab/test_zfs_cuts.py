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

SHORT, MIDDLE = Chain(a=4, b=2, c=2), Chain(a=8, b=8, c=8)
# More than ten times what waits in the pipe while a dead link is noticed; and what a pool had not written out yet.
LONG, LONGER = Chain(a=46, b=6, c=6), Chain(a=68, b=6, c=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A run under way, and how to end it."""

    pair: Pair
    copying: Copying
    run: Running


# When: a part of the stream has passed, or a snapshot has.

When = float | str


def wait_for(copying: Copying, when: When) -> None:
    """Until it is time, and what came so far can be gone on from."""
    if isinstance(when, str):
        copying.wait_for_snapshot(when)
    else:
        copying.wait_for(when)
        copying.wait_for_token()


# What.


def the_link(cut: Cut) -> None:
    """Mended once the stream is seen to be dead."""
    cut.pair.cut()
    cut.copying.at.sh("while pgrep -f '^mbuffer -q'; do sleep 0.1; done", seconds=PATIENCE)
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


# Who goes on: the same run, the next one after one that failed, or the next one after one that was never seen to end.
SAME, NEXT, HEIR = "the same run", "the next run", "the heir"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """When what was cut, one after the other, and who goes on."""

    cuts: tuple[tuple[When, Callable[[Cut], None]], ...]
    goes_on: str
    chain: Chain = SHORT
    pulls: bool = False

    def __str__(self) -> str:
        told = ", ".join(f"{what.__name__} at {when}" for when, what in self.cuts).replace("_", " ")
        return f"{'pulled, ' if self.pulls else ''}{told}: {self.goes_on} goes on"


ROWS = (
    Row(cuts=((0.35, the_link),), goes_on=SAME, chain=LONG),
    Row(cuts=((0.7, the_link),), goes_on=NEXT, pulls=True),
    Row(cuts=((0.1, poolferry_itself),), goes_on=HEIR),
    Row(
        cuts=((0.05, the_sending_zfs), (0.2, mbuffer_here), ("a", ssh), (0.6, mbuffer_there), ("b", the_receiving_zfs)),
        goes_on=SAME,
        chain=MIDDLE,
    ),
    Row(cuts=((0.35, the_power_of_the_master),), goes_on=HEIR),
    Row(cuts=((0.5, the_power_of_the_backup),), goes_on=SAME, chain=LONGER),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_copy_that_is_cut_goes_on(pair: Pair, row: Row) -> None:
    copying = Copying(
        *pair, pulls=row.pulls, chain=row.chain, rate=pace(pair) if row.chain in (SHORT, MIDDLE) and not row.pulls else "",
        attempts=6 if row.goes_on == SAME else 1, metered_there=row.cuts[0][1] is the_power_of_the_master,
    )  # fmt: skip
    run = copying.begin()
    for when, what in row.cuts:
        wait_for(copying, when)
        what(Cut(pair=pair, copying=copying, run=run))
    outcome = ended(run).get("outcome")
    assert outcome == {SAME: "done", NEXT: "failed", HEIR: None}[row.goes_on]
    if row.goes_on != SAME:
        copying.run()
    require_went_on(copying, row)
    copying.require_equal()
    copying.require_nothing_left()


def ended(run: Running) -> dict[str, Any]:
    """What a run said; nothing where it was killed, or lost its machine."""
    with contextlib.suppress(LabError):
        found = run.wait(PATIENCE)
        return answer(found) if found.out else {}
    return {}


def require_went_on(copying: Copying, row: Row) -> None:
    """History says that it was resumed, and why; and what was moved is the stream, and no tenth more."""
    stories = [copying.story(number) for number in ((1,) if row.goes_on == SAME else (1, 2))]
    moved, carried = sum(story["moved_bytes"] or 0 for story in stories), copying.carried()
    print("RATIO", row, "moved", moved / copying.stream, "carried", carried / copying.stream)
    last = stories[-1]
    assert (last["outcome"], last["resumed"]) == ("done", True), last
    if row.goes_on == HEIR:
        assert stories[0]["outcome"] == "interrupted", stories[0]
    steps = [step for attempt in last["attempt"] for step in attempt["steps"]]
    resumed = [step["why"] for step in steps if "the rest" in step["does"]]
    assert len(resumed) >= len([when for when, _ in row.cuts if when != "a"]), steps
    assert all("was cut; " in why and why.endswith("of it are there") for why in resumed), resumed
    assert moved <= 1.1 * copying.stream
    assert carried <= 1.1 * copying.stream

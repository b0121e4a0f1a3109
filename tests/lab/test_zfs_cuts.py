"""A first copy that is cut, wherever and however, goes on from where it was, and is then equal.

Other moments: POOLFERRY_CUTS_SEED is any other number than 0.
"""

import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab.common import LabError, Running
from tests.lab.cuts import COPY, PATIENCE, SOURCE, Chain, Copying, answer, kill, ours, pace
from tests.lab.frail import FrailPool
from tests.lab.laboratory import Pair
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

pytestmark = pytest.mark.virtual

# Read here: each test has an environment of its own.
SEED = int(os.environ.get("POOLFERRY_CUTS_SEED", "0"))
WINDOW = 2 << 20  # of ssh, in bytes
ROOM = 400 << 10  # in the narrow pipes and in mbuffer, in bytes
SHORT, QUICK, MIDDLE = Chain(a=8, b=1, c=1), Chain(a=10, b=1, c=1), Chain(a=20, b=10, c=10)
# More than ten times what two cuts lose at full speed: most of it waits in ssh's windows of 2 MiB, at both ends.
LONG, SMALL = Chain(a=76, b=4, c=4), Chain(a=5, b=1, c=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A run under way, and how to end it."""

    pair: Pair
    copying: Copying
    run: Running


# When: a part of the stream has passed, or a snapshot has.

When = float | str


def wait_for(copying: Copying, when: When, chance: random.Random) -> None:
    """Until it is time: with a seed at another moment of the same snapshot."""
    if isinstance(when, str):
        copying.wait_for_snapshot(when)
    else:
        copying.wait_for(when + (chance.uniform(0, 0.1) if SEED else 0))


# What.


def the_link(cut: Cut) -> None:
    """Mended once the connection is seen to be dead."""
    cut.pair.cut()
    cut.copying.at.sh("while pgrep -f '^ssh: '; do sleep 0.1; done", seconds=PATIENCE)
    cut.pair.mend()


def poolferry_itself(cut: Cut) -> None:
    """All that it started ends with it."""
    cut.run.kill(9)
    wait_until(lambda: not ours(cut.copying.at), 30, pause=0.3)


def sigterm(cut: Cut) -> None:
    """It ends soon, and here nothing of it goes on."""
    began = time.monotonic()
    cut.run.kill(15)
    cut.run.wait(PATIENCE)
    assert time.monotonic() - began < 10
    cut.copying.wait_for_token()
    assert [line for line in ours(cut.copying.at) if "receive" in line] == []


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
    """The same disk in the same machine, which is up again at once, and on the network only with its pool."""
    backup = cut.pair.backup
    backup.sh("zpool sync vault")  # a pool writes out each 5 seconds, and this whole stream takes not many more
    cut.pair.master.link(False)
    backup.power_cut()
    assert backup.template is not None
    backup.restore(backup.template)
    backup.plug(backup.disks["vault"])
    backup.sh("zpool import vault")
    cut.pair.master.link(True)


# Who goes on: the same run; or the next one after one that failed, that was stopped, or that was never seen to end.
SAME, NEXT, LATER, HEIR = "the same run", "the next run", "a later run", "the heir"
# What the run that was cut said at its end.
SAID = {NEXT: "failed", LATER: "interrupted", HEIR: None}
KNOWN = {NEXT: "failed", LATER: "interrupted", HEIR: "interrupted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Cuts of one run, one after the other, and the program that went on. `disks`: the pools lie on such as outlive the power."""

    cuts: tuple[tuple[When, Callable[[Cut], None], str], ...]
    chain: Chain
    paced: bool = False
    pulls: bool = False
    disks: bool = False

    def __str__(self) -> str:
        told = ", ".join(f"{what.__name__} at {when}: {who}" for when, what, who in self.cuts).replace("_", " ")
        return f"{'pulled, ' if self.pulls else ''}{told}"

    @property
    def changes(self) -> tuple[str, ...]:
        """Return where another run took over, which."""
        return tuple(who for _, _, who in self.cuts if who != SAME)


ROWS = (
    Row(cuts=((0.3, the_link, SAME), (0.6, the_power_of_the_backup, SAME)), chain=LONG, disks=True),
    Row(
        cuts=(
            (0.05, the_sending_zfs, SAME), (0.2, mbuffer_here, SAME), ("a", ssh, SAME), (0.6, mbuffer_there, SAME),
            ("b", the_receiving_zfs, SAME),
        ),
        chain=MIDDLE, paced=True,
    ),
    Row(cuts=((0.35, the_power_of_the_master, HEIR),), chain=SHORT, paced=True, disks=True),
    Row(cuts=((0.4, the_link, NEXT),), chain=QUICK, pulls=True),
    Row(cuts=((0.1, poolferry_itself, HEIR), (0.4, sigterm, LATER)), chain=SHORT, paced=True),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.sample(2)
def test_a_copy_that_is_cut_goes_on(pair: Pair, row: Row) -> None:
    what_is_cut = [what for _, what, _ in row.cuts]
    copying = Copying(
        *pair, pulls=row.pulls, chain=row.chain, rate=pace(pair) if row.paced else "", disks=row.disks,
        attempts=1 if row.changes else 6, metered_there=the_power_of_the_master in what_is_cut,
    )  # fmt: skip
    run, chance = copying.begin(), random.Random(f"{SEED} {row}")
    for when, what, who in row.cuts:
        wait_for(copying, when, chance)
        what(Cut(pair=pair, copying=copying, run=run))
        if who != SAME:
            assert ended(run).get("outcome") == SAID[who]
            run = copying.begin()
    told = ended(run)
    assert told.get("outcome") == "done", json.dumps(told)
    require_went_on(copying, row)
    copying.require_equal()
    copying.require_nothing_left()


def ended(run: Running) -> dict[str, Any]:
    """Return what a run said; nothing where it was killed, or lost its machine."""
    with contextlib.suppress(LabError):
        found = run.wait(PATIENCE)
        return answer(found) if found.out else {}
    return {}


def require_went_on(copying: Copying, row: Row) -> None:
    """History says that it was resumed, and why; what was carried is the stream, and no tenth more.

    At a pace, it is what each cut may lose: the second that its pool had not yet written out, and what lay on the way.
    Neither is what was moved, but for what ssh had taken in and not sent when it was cut: as much as its window where the wire
    is slower just then than the pace that was meant for it.
    """
    stories = copying.stories(*range(1, len(row.changes) + 2))
    moved, carried = sum(story["moved_bytes"] or 0 for story in stories), copying.carried()
    print(f"{row}: moved {moved / copying.stream:.3f} of the stream, carried {carried / copying.stream:.3f}")
    *earlier, last = stories
    assert (last["outcome"], last["resumed"]) == ("done", True), last
    assert [story["outcome"] for story in earlier] == [KNOWN[who] for who in row.changes], earlier
    steps = [step for story in stories for attempt in story["attempt"] for step in attempt["steps"]]
    resumed = [step["why"] for step in steps if "the rest" in step["action"]]
    # What is cut between two snapshots may have left nothing to resume.
    assert len(resumed) >= len([when for when, _, _ in row.cuts if isinstance(when, float)]), steps
    assert all("was cut; " in why and why.endswith("of it are there") for why in resumed), resumed
    lost = len(row.cuts) * (1000 * int(copying.rate.rstrip("k")) + ROOM) if row.paced else 0
    assert carried <= max(1.1 * copying.stream, 1.02 * copying.stream + lost)
    assert moved <= 1.1 * copying.stream + len(row.cuts) * WINDOW


@pytest.mark.long
def test_a_disk_that_fails_takes_up_the_rest(master: VirtualMachine) -> None:
    """The pool stands still until the disk is back; the run does not."""
    copying = Copying(master, master, chain=Chain(a=16, b=1, c=1), rate="1M", stall_after="4s", frail=True)
    run = copying.begin()
    copying.wait_for_used(0.1)
    assert isinstance(copying.vault, FrailPool)
    copying.vault.fail()
    first = ended(run)
    assert first["outcome"] == "failed", first
    assert "nothing moved" in first["why"], first
    assert "suspended" in first["hint"], first
    away = copying.run()
    assert away["outcome"] == "waiting", away
    copying.vault.mend()
    wait_until(lambda: not ours(master), 60, pause=0.3)
    last = copying.run()
    assert last["outcome"] == "done", str(last)
    # A receive on a suspended pool goes on in memory, and what it has by then is written when the disk is back: it may be all.
    sends = [step["action"] for step in last["steps"] if step["action"].startswith("send ")]
    assert last["resumed"] or sends[0].startswith(f"send {SOURCE} @a →"), str(last)
    print(f"a disk that failed: moved {copying.moved(1, 2, 3):.3f} of the stream")
    assert copying.moved(1, 2, 3) <= 1.1
    copying.require_equal()
    copying.require_nothing_left()


@pytest.mark.long
def test_of_two_runs_at_once_one_waits(master: VirtualMachine) -> None:
    copying = Copying(master, master, chain=SMALL, rate="1M")
    run = copying.begin()
    copying.wait_for_token()
    run.kill(signal.SIGSTOP)  # so that it lasts until the other one has looked
    second = copying.begin().wait(PATIENCE)
    run.kill(signal.SIGCONT)
    assert (second.code, answer(second)["outcome"]) == (75, "waiting"), second
    assert "another run of photos" in answer(second)["why"]
    assert ended(run)["outcome"] == "done"
    copying.require_equal()


@pytest.mark.long
def test_what_a_killed_run_had_kept_is_let_go_when_it_is_stale(master: VirtualMachine) -> None:
    """Its snapshot is gone, and so is what had arrived of it."""
    copying = Copying(master, master, chain=SMALL, rate="1M")
    run = copying.begin()
    copying.wait_for_token()
    run.kill(9)
    wait_until(lambda: not ours(master), 30, pause=0.3)
    held = [line.split() for line in master.sh(f"zfs holds -H {SOURCE}@a {SOURCE}@b {SOURCE}@c").lines]
    assert [snapshot for snapshot, *_ in held] == [f"{SOURCE}@a", f"{SOURCE}@b"], held
    tag = held[0][1]
    master.sh(f"zfs release {tag} {SOURCE}@a && zfs destroy {SOURCE}@a && zfs destroy -r {COPY}")
    marks = master.sh(f"zfs list -Hp -t bookmark -o name -r {SOURCE}").lines
    assert len([mark for mark in marks if "_held_" in mark]) == 1, marks
    # Where the copy would have stood after each of its two streams; @b, which lies within the second one, is held.
    assert len([mark for mark in marks if "_held_" not in mark]) == 2, marks
    last = copying.run()
    assert (last["outcome"], last["resumed"]) == ("done", False), last
    copying.require_equal("b", "c")
    copying.require_nothing_left()

"""Every way in which a cut receive can be found: what a run does with it, in how many attempts, and the reason in history."""

from pathlib import Path

import pytest

from tests.lab.common import Machine
from tests.lab.rows import REFUSED, Row, Table, Turn

_CUT = "begin; grow $s two; cut_more -i @one $s@two\n"
_FIRST = "zfs create $s; grow $s one; cut $s@one\n"
# A receive that keeps nothing when it is cut, and still waits for its sender.
_WAITING = """zfs create $s; grow $s one
(setsid sh -c "(zfs send $s@one | head -c 600000; exec sleep 900) | exec zfs receive -u -x poolferry:receive $c" >/dev/null 2>&1 &)
until [ "$(zfs get -Hpo value inconsistent $c 2>/dev/null)" = 1 ]; do sleep 0.1; done
"""
# Another program's, which can go on and waits for its sender.
_THEIRS = """begin; grow $s two
(setsid sh -c "(zfs send -i @one $s@two | head -c 600000; exec sleep 900) | exec zfs receive -s -u $c" >/dev/null 2>&1 &)
until [ "$(zfs get -Hpo value receive_resume_token $c)" != - ]; do sleep 0.1; done
"""
_GONE = r"\$s@two \(guid \d+\), which a cut send was about, is gone from the source".replace(r"\$s", "$s")
_THERE = r"a send of @{} \(guid \d+\) was cut; [0-9.]+ KiB of it are there"

ROWS = (
    Row(name="good", turns=(
        Turn(action=_CUT, resumed=True, says=(_THERE.format("two"),), sends=("$s @two, the rest",)),
    )),
    Row(name="theirs", turns=(
        Turn(action=_THEIRS, outcome=REFUSED, sends=(),
             says=("another program receives into $c", r"process \d+; no run of ours began it", r"end it: kill \d+")),
        Turn(action="kill $(pgrep -f '^zfs receive -s -u $c'); while pgrep -f '^zfs receive -s -u $c'; do sleep 0.1; done",
             resumed=True, sends=("$s @two, the rest",)),
    )),
    Row(name="more", turns=(
        Turn(action=_CUT + "grow $s three; grow $s four", resumed=True,
             says=(_THERE.format("two"), "the token covers @two alone; what follows continues from it"),
             sends=("$s @two, the rest", "$s @two → @four, with all between")),
    )),
    Row(name="first", turns=(
        Turn(action=_FIRST + "grow $s two", resumed=True, says=(_THERE.format("one"),),
             sends=("$s @one, the rest", "$s @one → @two, incremental")),
    )),
    Row(name="renamed", turns=(
        Turn(action=_CUT + "zfs rename $s@two $s@uno", resumed=True, says=(_THERE.format("uno"),),
             sends=("$s @uno, the rest",)),
    )),
    Row(name="destroyed", turns=(
        Turn(action=_CUT + "zfs destroy $s@two; grow $s three", says=("throw away what was cut in $c: " + _GONE,),
             sends=("$s @one → @three, incremental",)),
    )),
    Row(name="another", turns=(
        Turn(action=_CUT + "zfs destroy $s@two; grow $s two", says=("throw away what was cut in $c: " + _GONE,),
             sends=("$s @one → @two, incremental",)),
    )),
    Row(name="first-gone", turns=(
        Turn(action=_FIRST + "zfs destroy $s@one; grow $s two",
             says=(_GONE.replace("@two", "@one"), "the target has no copy of it"), sends=("$s @two, the whole",)),
    )),
    Row(name="bookmark", turns=(
        Turn(action=_CUT + "zfs bookmark $s@one $s#kept; zfs destroy $s@one", resumed=True,
             says=(_THERE.format("two"),), sends=("$s @two, the rest",)),
    )),
    Row(name="baseless", turns=(
        Turn(action="zfs create $s; grow $s zero; grow $s one; zfs send -Lce $s@zero | take; zfs send -i @zero $s@one | "
             "zfs receive -u $c; grow $s two; cut_more -i @one $s@two; zfs destroy $s@one",
             outcome=REFUSED, says=("$c has 1 snapshot of its own since @zero", "newest snapshot both sides hold is @zero"),
             sends=()),
        Turn(options='may-destroy = ["rollback"]', loses=True, sends=("$s @zero → @two, incremental",),
             says=(r"throw away what was cut in $c: the cut send of @two \(guid \d+\) starts from snapshot \d+",
                   "and the target's newest is @zero", "roll $c back to @zero, which destroys $c@one")),
    )),
    Row(name="foreign", turns=(
        Turn(action="zfs create tank/else; grow tank/else x; zfs create $s; grow $s one; cut tank/else@x",
             outcome=REFUSED, sends=(),
             says=("a cut receive of something else lies in $c", r"its token is for tank/else@x \(guid \d+\)",
                   "poolferry run rows --allow abort")),
        Turn(allow=frozenset({"abort"}), says=("throw away what was cut in $c: thrown away, as --allow abort asks",),
             sends=("$s @one, the whole",)),
    )),
    Row(name="tokenless", alone=True, turns=(
        Turn(action=_WAITING, attempts=2, sends=("$s @one, the whole",),
             says=(r"end process \d+, which still receives into $c: no other run of this job can be alive",)),
    )),
    Row(name="raw", turns=(
        Turn(action="key $s; grow $s one; cut $s@one", sends=("$s @one, the whole",),
             says=("throw away what was cut in $c: the cut send was not raw, and this chain is raw",)),
    )),
    Row(name="raw-for-nothing", turns=(
        Turn(action="zfs create $s; grow $s one; cut -w $s@one", resumed=True, says=(_THERE.format("one"),),
             sends=("$s @one, the rest",)),
    )),
    Row(name="left-out", options='skip-snapshots = ["two"]', turns=(
        Turn(action=_CUT + "grow $s three", sends=("$s @one → @three, incremental",),
             says=(r"@two \(guid \d+\) is about a snapshot that \[zfs\] snapshots and skip-snapshots leave out today",)),
    )),
)  # fmt: skip
# The rows in which it is ZFS that finds the stream's snapshots again, or a receive that waits; the rest is decided by us.
WHAT_ZFS_FINDS = ("first", "renamed", "destroyed", "bookmark", "tokenless", "raw")


@pytest.mark.flavours("trixie", "bookworm")
@pytest.mark.timeout(900)
@pytest.mark.long
def test_each_row_of_the_token_table(master: Machine, flavour: str, tmp_path: Path) -> None:
    rows = ROWS if flavour == "trixie" else tuple(row for row in ROWS if row.name in WHAT_ZFS_FINDS)
    master.pool("tank")
    master.pool("vault")
    master.sh("zfs create vault/copies")
    Table(master, tmp_path).play(rows)
    assert set(master.sh("zfs get -H -t filesystem -r -o value receive_resume_token vault").lines) == {"-"}
    assert master.sh("zfs list -H -o name -t snapshot -r tank | xargs zfs holds -H").text == ""
    marks = master.sh("zfs list -H -o name -t bookmark -r tank").lines
    assert sorted(mark.partition("#poolferry_")[0] for mark in marks if not mark.endswith("#kept")) == sorted(
        row.at(0).source for row in rows
    )

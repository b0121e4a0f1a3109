"""Pools as a tired admin, or time, leaves them: what a run says of each is true, and what it names ends the trouble."""

from pathlib import Path

import pytest

from tests.lab.common import Machine
from tests.lab.rows import FAILED, NOTHING, REFUSED, Row, Table, Turn
from tests.lab.virtual import POOLS

_ALL_THE_SAME = frozenset({"no-bookmarks"})
_FILL = "for block in 1M 4K; do dd if=/dev/urandom bs=$block >>/{0}/{0}/big 2>/dev/null || :; zpool sync {0}; done"
ROWS = (
    Row(name="promoted", alone=True, turns=(
        Turn(action="begin; zfs clone $c@one vault/look; zfs promote vault/look; grow $s two", outcome=REFUSED,
             says=("$c has no snapshot of its own: it is a clone of vault/look@one", "zfs promote $c")),
        Turn(action="zfs promote $c", sends=("$s @one → @two, incremental",)),
    )),
    Row(name="full", alone=True, source="full/full", turns=(
        Turn(action="zfs create full/full; grow full/full one; zfs snapshot full/full@two; " + _FILL.format("full"), outcome=FAILED,
             says=("the source's pool has no space left, not even for a bookmark", "--allow no-bookmarks")),
        Turn(allow=_ALL_THE_SAME, says=("no bookmark and no hold is made on the source",)),
        Turn(action="rm /full/full/big; zpool sync full; grow full/full three", sends=("$s @two → @three, incremental",)),
    )),
    Row(name="read-only", alone=True, source="rescue/rescue", turns=(
        Turn(action=f"zfs create rescue/rescue; grow rescue/rescue one; zpool export rescue; zpool import -d {POOLS} -o readonly=on rescue",
             outcome=FAILED, says=("the source's pool is imported read-only, so no bookmark can be made there", "--allow no-bookmarks")),
        Turn(allow=_ALL_THE_SAME, sends=("$s @one, the whole",)),
        Turn(allow=_ALL_THE_SAME, outcome=NOTHING),
    )),
    Row(name="old", alone=True, source="old/old", turns=(
        Turn(action="zfs create old/old; grow old/old one", outcome=FAILED,
             says=("the source's pool is older than bookmarks", "zpool set feature@bookmarks=enabled")),
        Turn(allow=_ALL_THE_SAME, sends=("$s @one, the whole",)),
        Turn(action="zpool set feature@bookmarks=enabled old; grow old/old two", sends=("$s @one → @two, incremental",)),
    )),
)  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_copy_that_was_promoted_away_and_sources_that_take_no_bookmark(master: Machine, tmp_path: Path) -> None:
    for name in ("tank", "vault"):
        master.pool(name)
    for name in ("full", "rescue"):
        master.pool(name, "96M")
    master.pool("old", "96M", options=("-d",))
    master.sh("zfs create vault/copies")
    Table(master, tmp_path).play(ROWS)

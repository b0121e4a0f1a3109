"""The tour of jobs/datasets.md is run on real pools: each `#` line of its console blocks, in order, as root.

Numbers, times, names of our bookmarks and the lines of progress may differ. `WRITE_README=1` writes the output anew.
"""

import os
import re

import pytest

from tests.lab.common import Machine
from tests.tour import DATASETS, commands_of, console_blocks, shape, written_into

_JOB = """\
engine = "zfs"
source = "tank/photos"
target = "vault"

[snapshots]
daily = 14

[keep]
daily = 60

[pipe]
rate-limit = "8M"
"""
_GUID = re.compile(r"poolferry_[0-9a-f_]+|autosnap_[0-9:_-]+_daily|\d{16,20}")


@pytest.mark.timeout(600)
def test_the_tour_prints_what_the_page_shows(master: Machine) -> None:
    master.pool("tank", "1G")
    master.pool("vault", "1G")
    master.sh("zfs create tank/photos && zfs create vault/replicas && seq 300000 > /tank/photos/2026.jpg")
    master.job("photos", _JOB, targets='[place.vault]\ndataset = "vault/replicas"\n')
    text = DATASETS.read_text()
    blocks = console_blocks(DATASETS, "#")
    assert blocks
    written = ["".join(_run(command, master) for command in commands_of(block[1], "#")) for block in blocks]
    if os.environ.get("WRITE_README"):
        DATASETS.write_text(written_into(text, blocks, written))
        return
    for block, came in zip(blocks, written, strict=True):
        assert _settled(came) == _settled(block[1])


def _run(command: str, machine: Machine) -> str:
    done = machine.sh(f"exec 2>&1; export COLUMNS=160 TZ=UTC; {command}", check=False, seconds=120)
    return f"# {command}\n{done.out.decode()}"


def _settled(text: str) -> list[str]:
    """Without lines of progress, which come when they come."""
    lines = shape(_GUID.sub("NAME", text))
    return [line for line in lines if not re.match(r"photos: 0%?,", line)]

"""Nothing touches a disk in the middle of its visit, nor one that is just being enrolled: real ext4 on loop devices."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.disks.detect import find_path
from orchestrator.process.executor import Reader
from orchestrator.runner.locks import lock_device
from tests.ferry import COMMAND
from tests.whole.house import wait_until
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
WAITS = "#!/bin/sh\ntouch {there}; until [ -e {on} ]; do sleep 0.1; done\n"


@contextmanager
def visited(drawer: LoopDisks) -> Iterator[dict[str, object]]:
    """A visit of disk red stands still while the body runs; what it yields is filled with how the visit ended."""
    there, on, hook = (drawer.root / name for name in ("there", "on", "hook"))
    hook.write_text(WAITS.format(there=there, on=on))
    hook.chmod(0o755)
    drawer.job("photos", f'[hooks]\ndone = ["{hook}"]\n')
    argv = [*COMMAND, "disks", "scan", "--json"]
    going = subprocess.Popen(argv, env=drawer.ferry.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found: dict[str, object] = {}
    try:
        wait_until(there.exists, going=going)
        yield found
    finally:
        on.touch()
        out, _ = going.communicate(timeout=60)
    found.update(json.loads(out)["visits"][0], code=going.returncode)


def test_who_comes_in_the_middle_of_a_visit_is_told_so_and_changes_nothing(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    red, marker = drawer.full("red"), drawer.mountpoint("red") / ".poolferry-disk.json"
    with visited(drawer) as visit:
        before = marker.read_bytes()
        for words in ("readopt", "attach", "eject", "lost", "retire", "scan"):
            ended = drawer.run("disks", words, *([] if words == "scan" else [red]))
            assert ended.code == 75, ended
            assert f"another visit of disk {red} is going on" in ended.out + ended.err
        assert (drawer.mounted("red"), marker.read_bytes()) == (True, before)
        (disk,) = drawer.run("disks", "--json").value["sets"][0]["disks"]
        assert (disk["standing"], disk["place"]) == ("active", "attached")
    assert (visit["code"], visit["ending"], visit["safe"]) == (0, "done", True), visit
    assert drawer.run("disks", "readopt", red).code == 0
    assert drawer.scan()["visits"]["red"]["ending"] == "done"


@pytest.mark.parametrize("content", ["", "ext4"])
def test_a_device_is_enrolled_by_one_at_a_time(drawer: LoopDisks, tmp_path: Path, content: str) -> None:
    device = drawer.blank("red")
    if content:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
    found, _ = find_path(device, Reader())
    assert found is not None
    before = drawer.digest("red")
    requested = ["disks", "enroll", device, "--set", "offsite", "--name", drawer.full("red"), "--inner"]
    requested += ["--adopt"] if content else []
    with lock_device(found, str(tmp_path / "of-another")):
        ended = drawer.run(*requested)
        assert (ended.code, "is being enrolled or visited already" in ended.err) == (75, True), ended
        assert drawer.digest("red") == before
    assert drawer.run(*requested).code == 0

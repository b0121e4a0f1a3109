"""Test that what `disks enroll` writes is always valid: following the manual's own example from the first disk on, on real ext4."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.daemon.daemon_world import daemon
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
PAGE = (Path(__file__).resolve().parents[2] / "jobs" / "disks.md").read_text()
EXAMPLES = re.findall(r"```toml\n# ([a-z/.]+)\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_s_example_works_from_its_first_disk_on(drawer: LoopDisks) -> None:
    assert [name for name, _ in EXAMPLES] == ["targets.toml", "jobs/photos.toml"]
    for name, text in EXAMPLES:
        (drawer.ferry.config / name).write_text(text.replace("/srv/photos", str(drawer.source)))
    for name in ("red", "blue"):
        drawer.enrolled(name, "--note", f"{name} sticker")
        for words in (["check"], ["disks"], ["status"], ["disks", "show", drawer.full(name)]):
            ended = drawer.run(*words)
            assert ended.code == 0, ended
        ended = drawer.run("disks", "scan", drawer.full(name))
        assert (ended.code, f"SAFE TO REMOVE: {drawer.full(name)}" in ended.out) == (0, True), ended


def test_the_daemon_takes_in_a_new_disk_by_itself(drawer: LoopDisks) -> None:
    """Nobody sends it a signal: enroll does, and says so."""
    with daemon(drawer.ferry) as clock:
        clock.says("read ")
        device = drawer.blank("red")
        words = ("disks", "enroll", device, "--set", "offsite", "--name", drawer.full("red"), "--inner", "--json")
        ended = drawer.run(*words)
        assert (ended.code, ended.value["daemon"]) == (0, clock.process.pid), ended
        clock.says("read ", times=2)


def test_nothing_is_erased_for_a_configuration_that_would_be_wrong(drawer: LoopDisks) -> None:
    device = drawer.blank("red")
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    file = drawer.ferry.config / "targets.toml"
    before, text = drawer.digest("red"), file.read_text() + 'order = ["green"]\nexpect = "fixed"\n'
    file.write_text(text)
    ended = drawer.run(
        "disks", "enroll", device, "--set", "offsite", "--name", drawer.full("red"), "--inner", "--adopt"
    )
    assert (ended.code, f"{file}:" in ended.err, drawer.digest("red"), file.read_text()) == (2, True, before, text), (
        ended
    )


def test_a_set_for_both_kinds_is_named_by_check(drawer: LoopDisks) -> None:
    (drawer.ferry.config / "jobs" / "tank.toml").write_text('engine = "zfs"\nsource = "tank/x"\ntarget = "offsite"\n')
    ended = drawer.run("check")
    assert (ended.code, "jobs/tank.toml:3" in ended.out + ended.err) == (2, True), ended
    (drawer.ferry.config / "jobs" / "tank.toml").write_text(
        'engine = "zfs"\nsource = "tank/x"\ntarget = "offsite-datasets"\n'
    )
    with (drawer.ferry.config / "targets.toml").open("a") as file:
        file.write("[set.offsite-datasets]\n")
    assert drawer.run("check").code == 0, "the hint"

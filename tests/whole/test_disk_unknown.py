"""A disk that is none of ours, plugged in while a set waits for one: real ext4 on loop devices, and a real mail server."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.notices import by_mail, subjects
from tests.peers import MailServer, read
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
THERE = "5f0cbe52-0d5c-4f2a-9a8b-7e51a2a4a001"
REMOVABLE = """#!{python}
# lsblk, but this loop device can be pulled out.
import json, subprocess, sys
found = json.loads(subprocess.run(["{lsblk}", *sys.argv[1:]], check=True, capture_output=True).stdout)
for each in found["blockdevices"]:
    each["rm"] = each["rm"] or each["path"] == "{device}"
print(json.dumps(found))
"""


def removable(drawer: LoopDisks, device: str) -> dict[str, str]:
    """The environment in which a loop device is one that can be pulled out."""
    folder = drawer.root / "bin"
    folder.mkdir(exist_ok=True)
    lsblk = shutil.which("lsblk", path=f"{os.environ['PATH']}:/usr/bin:/bin")
    (folder / "lsblk").write_text(REMOVABLE.format(python=sys.executable, lsblk=lsblk, device=device))
    (folder / "lsblk").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def content(image: Path) -> bytes:
    return image.read_bytes()


def test_an_unknown_disk_is_told_and_reported_once_while_a_set_waits(drawer: LoopDisks, server: MailServer) -> None:
    (drawer.ferry.config / "poolferry.toml").write_text(by_mail(server) + '[digest]\nday = "never"\n')
    drawer.enrolled("red")
    drawer.pull("red")
    other = drawer.blank("other")
    subprocess.run(["mkfs.ext4", "-q", "-F", "-U", THERE, "-L", "HOLIDAY", other], check=True, capture_output=True)
    before, here = content(drawer.image("other")), removable(drawer, other)
    scan = ("disks", "scan", "--identity", THERE.upper())

    ended = drawer.ferry.run(*scan, **here)
    assert (ended.code, ended.out, ended.err) == (0, "", ""), "nothing waits yet"
    assert drawer.run("run", "photos").code == 75
    ended = drawer.ferry.run(*scan, **here)
    says = f'unknown disk {other}: it holds ext4 "HOLIDAY" and is not one of ours; nothing was written to it'
    assert (ended.code, says in ended.err, "the set offsite waits for a disk of its own" in ended.err) == (
        0,
        True,
        True,
    )
    assert subjects(server) == [f"the set offsite is waiting: {says}"[:200]]
    body = read(server.letters[0][-1]).get_content().replace("\r\n", "\n")
    assert "what to do: it may be unplugged; to make it one: poolferry disks enroll" in body
    assert "Rule: a disk that is not one of ours is reported once" in body
    assert says in drawer.ferry.run(*scan, **here).err
    assert len(server.letters) == 1, "once"
    listed = drawer.ferry.run("disks", **here).out
    assert listed.count(says) == 1
    drawer.pull("other")
    assert content(drawer.image("other")) == before
    listed = drawer.run("disks").out
    assert f"offsite: {says} (plugged in 20" in listed, "it is known after it was pulled out, too"

    # The hint, as it is printed: it erases nothing, and names both ways on.
    other = drawer.plug("other")
    here = removable(drawer, other)
    hint = f"disks enroll {other} --set offsite --name"
    assert hint in drawer.ferry.run("disks", **here).out
    refused = drawer.ferry.run(*hint.split(), "late", **here)
    assert (refused.code, "--adopt" in refused.out, "--erase" in refused.out) == (3, True, True), refused
    assert content(drawer.image("other")) == before
    drawer.plug("red")
    assert drawer.run("disks", "scan").code == 0
    drawer.pull("red")
    assert "HOLIDAY" not in drawer.run("disks").out, "the set waits no more"

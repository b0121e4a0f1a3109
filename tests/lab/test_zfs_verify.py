"""`verify` on real pools: what the look tells, what reading both sides finds, and that nothing of it stays behind."""

import os
from typing import Any

import pytest

from tests.lab.common import ENCRYPTED, Machine
from tests.lab.laboratory import Pair
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

BOTH = pytest.mark.flavours("trixie", long=["bookworm"])
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'
COPY = "vault/copies/photos"
MARK = b"here lies a block that nobody else has "


def set_up(master: Machine, more: str = "") -> None:
    """Two pools and a job; two datasets with two snapshots each, copied."""
    master.pool("tank", "200M")
    master.pool("vault", "200M")
    # Uncompressed, so that the marked block can be found on the disk.
    master.sh("zfs create vault/copies && zfs create -o compression=off tank/photos && zfs create tank/photos/sub")
    master.write("/tank/photos/marked", MARK * 1000)
    master.write("/tank/photos/sub/a b", "one")
    master.sh(r"""cd /tank/photos; ln -s marked link; echo x >'back\slash'; echo y >"$(printf 'new\nline')"; mkfifo pipe
        zfs snapshot -r tank/photos@a; echo two >sub/two; zfs snapshot -r tank/photos@b""")
    master.job("photos", JOB + more, targets=PLACE)
    master.kitted("photos", "bare", at=("vault", "bare"))
    ran = master.poolferry("run", "photos", "--json")
    assert ran.code == 0, ran


def verify(master: Machine, *more: str) -> dict[str, Any]:
    """The verdict as JSON; the exit code fits the outcome."""
    ended = master.poolferry("verify", "photos", "--json", *more)
    assert ended.out, ended
    told: dict[str, Any] = ended.json
    assert ended.code == {"done": 0, "failed": 1, "refused": 3, "interrupted": 1}[told["outcome"]], ended
    return told


def found(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["path"], each["verdict"]) for each in told["reading"]["findings"]]


def left_behind(master: Machine) -> str:
    """Mounts of snapshots, temporary folders, readers."""
    look = "grep @ /proc/*/mounts; ls -d /tmp/tmp.*; pgrep -a 'find|sha256sum|xargs'; ls /var/lib/poolferry/notes/verify-photos"
    return master.sh(look, check=False).text


@BOTH
def test_a_copy_is_sound_until_it_is_changed(master: Machine) -> None:
    set_up(master)
    told = verify(master)
    assert (told["outcome"], told["point"], told["steps"]) == ("done", "b", []), told
    assert "both sides hold the same 4 snapshots of 2 datasets, by guid; contents were not read" in told["why"]
    told = verify(master, "--content")
    assert told["outcome"] == "done", told
    assert (told["reading"]["findings"], told["reading"]["files_read"]) == ([], 5)
    assert told["source"]["findings"] == []
    assert len(told["steps"]) == 4
    assert left_behind(master) == ""
    # What the look finds.
    master.sh(f"""zfs destroy {COPY}/sub@a; zfs snapshot {COPY}@own
        zfs set readonly=off {COPY}/sub; zfs mount {COPY} || :; mkdir -p /mnt/x; mount -t zfs -o zfsutil {COPY}/sub /mnt/x
        echo changed >/mnt/x/changed; umount /mnt/x; zpool sync vault""")
    told = verify(master)
    assert told["outcome"] == "failed"
    assert sorted(found(told)) == [("@own", "extra"), ("sub", "edited"), ("sub@a", "missing")]
    master.sh("zfs create tank/photos/late && zfs snapshot tank/photos/late@c")
    assert any("not copied yet" in warning and "late" in warning for warning in verify(master)["warnings"])
    told = verify(master, "--point", "b")
    assert (told["outcome"], told["reading"]["findings"]) == ("done", []), told
    assert verify(master, "--point", "nope")["outcome"] == "refused"
    master.sh("zfs destroy -r tank/photos@b")  # nothing uses it any more


def damage(master: Machine, pool: str) -> None:
    """Changes bytes of the marked file on the target's disk, behind the pool's back."""
    disk = master.lies_on(pool)
    master.sh(f"zpool export {pool}")
    places = master.sh(
        f"sync; grep -obUa 'here lies a block' {disk} | cut -d: -f1 | sort -n | head -n 500", check=False
    ).lines
    assert len(places) > 100
    master.sh(f"printf HERE | dd of={disk} bs=1 seek={places[50]} conv=notrunc,fsync status=none")
    master.sh(f"zpool import -d {os.path.dirname(disk)} {pool}")


@pytest.mark.long
def test_damaged_contents_are_found(master: Machine) -> None:
    """By the pool's own checksums; and on a pool that has none."""
    set_up(master)
    master.pool("bare", "200M", options=("-O", "checksum=off"))
    master.sh("zfs create bare/copies")
    master.job("bare", JOB.replace("vault", "bare"), targets=PLACE + '[place.bare]\ndataset = "bare/copies"\n')
    assert master.poolferry("run", "bare").code == 0
    assert [told["outcome"] for told in verify_both(master, 0, "--content")] == ["done", "done"]
    for pool in ("vault", "bare"):
        damage(master, pool)
    assert [told["outcome"] for told in verify_both(master, 0)] == ["done", "done"]  # guids know nothing of contents
    for told, verdict in zip(verify_both(master, 1, "--content"), ("unreadable", "rotten"), strict=True):
        assert told["outcome"] == "failed", told
        assert found(told) == [("@b/marked", verdict)], told
        assert "zpool scrub" in told["hint"]
    assert left_behind(master) == ""
    for job in ("photos", "bare"):
        points = {each["point"]: each["sound"] for each in master.poolferry("points", job, "--json").json["points"]}
        assert points["b"] is False


def verify_both(master: Machine, code: int, *more: str) -> list[dict[str, Any]]:
    """The verdicts on both jobs."""
    ended = master.poolferry("verify", "photos", "bare", "--json", *more)
    assert ended.code == code, ended
    told: list[dict[str, Any]] = ended.json["verified"]
    return told


@pytest.mark.long
def test_what_nobody_can_read_is_unproved(master: Machine) -> None:
    master.pool("tank", "200M")
    master.pool("vault", "200M")
    master.sh(f"""zfs create vault/copies && zfs create tank/photos
        {ENCRYPTED} tank/photos/secret
        zfs create -V 8M tank/photos/disk; zfs set snapdev=visible tank/photos/disk
        dd if=/dev/urandom of=/dev/zvol/tank/photos/disk bs=1M count=2 status=none; zfs snapshot -r tank/photos@a""")
    master.job("photos", JOB, targets=PLACE)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").code == 0
    master.sh(f"zfs set snapdev=hidden {COPY}/disk")
    told = verify(master, "--content")
    assert told["outcome"] == "done", told
    assert sorted(found(told)) == [("disk@a", "unproved"), ("secret@a", "unproved")]
    assert any("only a scrub (zpool scrub vault) and a trial receive" in warning for warning in told["warnings"])
    assert any("snapdev=visible" in warning for warning in told["warnings"])
    master.sh(f"zfs set snapdev=visible {COPY}/disk; udevadm settle")
    wait_until(lambda: master.sh(f"test -e /dev/zvol/{COPY}/disk@a", check=False).code == 0, 20)
    told = verify(master, "--content")
    assert found(told) == [("secret@a", "unproved")]
    assert told["reading"]["bytes_read"] == 8 << 20


@pytest.mark.long
def test_a_run_reads_again_as_it_promises(master: Machine) -> None:
    set_up(master, '[verify]\nevery = "run"\n')
    master.sh("zfs snapshot tank/photos@c")
    ran = master.poolferry("run", "photos", "--json").json
    assert ran["outcome"] == "done", ran
    assert {step["action"] for step in ran["steps"] if step["action"].startswith("read ")} == {
        "read tank/photos@c on the source", f"read {COPY}@c on the target",
        "read tank/photos/sub@b on the source", f"read {COPY}/sub@b on the target",
    }  # fmt: skip
    told = verify(master)
    assert told["reading"]["files_read"] == 5, "due with each, so without being asked"
    only_root_reads_contents_and_is_told_how(master)


def only_root_reads_contents_and_is_told_how(master: Machine) -> None:
    master.sh("chown -R ferry /var/lib/poolferry")
    ended = master.poolferry(
        "verify", "photos", "--content", "--json", "--config", "/etc/poolferry", "--state", "/tmp/state", user="ferry"
    )
    assert (ended.code, ended.json["outcome"]) == (1, "failed"), ended
    assert "contents can be read by root alone" in ended.json["why"]
    assert "sudo = true" in ended.json["hint"]


@pytest.mark.virtual
def test_the_far_side_reads_its_own(pair: Pair) -> None:
    master, backup = pair
    master.pool("tank", "200M")
    backup.pool("vault", "200M")
    backup.sh("zfs create vault/copies")
    master.sh("zfs create tank/photos; echo one >'/tank/photos/a b'; zfs snapshot tank/photos@a")
    master.kitted("photos")
    master.job("photos", JOB, targets='[place.vault]\ndataset = "ssh://root@backup/vault/copies"\n')
    assert master.poolferry("run", "photos", "--json").code == 0
    told = verify(master, "--content")
    assert (told["outcome"], told["reading"]["files_read"]) == ("done", 1), told
    for machine in pair:
        assert left_behind(machine) == ""


@pytest.mark.virtual
@pytest.mark.long
def test_a_reading_that_is_cut_leaves_no_mount(master: VirtualMachine) -> None:
    set_up(master)
    # A reader that never ends, so that there is something to cut.
    master.write("/usr/local/bin/sha256sum", "#!/bin/sh\nexec sleep 600\n", mode=0o755)
    for number in (15, 9):
        running = master.popen(["poolferry", "verify", "photos", "--content", "--json"])
        running.until(lambda: master.sh("pgrep -x sleep -a | grep 600", check=False).code == 0, 150)
        assert master.sh("grep -l photos@b /proc/*/mounts", check=False).text
        running.kill(number)
        assert running.wait(30).code != 0
        wait_until(lambda: not still_reading(master), 90, pause=0.5)
        if number == 15:
            assert left_behind(master) == ""
    master.sh("zfs destroy -r tank/photos@b")


def still_reading(master: Machine) -> str:
    left = "grep -s photos@b /proc/[0-9]*/mounts; ps -eo pid,ppid,stat,args | grep -e '[s]leep 600' -e '[s]ha256sum' -e '[u]nshare'"
    return master.sh(left, check=False).text

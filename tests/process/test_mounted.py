"""Mounts as the kernel lists them: which of them say truly which folder of their filesystem they show."""

import pytest

from orchestrator.process.mounted import parse_mount


@pytest.mark.parametrize(
    ("line", "root"),
    [
        ("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue", "/mnt1"),  # as in proc(5)
        ("40 35 0:31 /sub\\040vol /a rw shared:1 - btrfs /dev/sda rw", "/sub vol"),
        ("41 35 0:32 / /dev/shm rw - tmpfs none rw", "/"),
        ("50 35 0:50 / /home rw,relatime shared:9 - nfs4 nas:/vol/home rw,vers=4.2", None),
        ("51 35 0:50 / /backup rw,relatime shared:10 - nfs4 nas:/vol/backup rw,vers=4.2", None),  # another folder than /home
        ("52 35 0:51 / /far rw - fuse.sshfs host: rw", None),
    ],
)  # fmt: skip
def test_a_mount_of_a_host_tells_no_folder(line: str, root: str | None) -> None:
    found = parse_mount(line + "\n")
    assert (found and found[2]) == root

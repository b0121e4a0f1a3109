"""Each disk of a set, alone on a machine without poolferry: its page, followed as it stands, brings everything back."""

import pytest

from tests.lab.pools import guids
from tests.lab.usb_disks import DATASETS, SET, UsbDisks
from tests.lab.virtual import VirtualMachine

pytestmark = [pytest.mark.virtual, pytest.mark.long, pytest.mark.timeout(900)]
KEYS = {"red": "a1" * 32, "blue": "open sesame"}
MORE = {"red": (), "blue": ("--luks",), "green": ()}


def test_the_page_on_each_disk_brings_all_back_where_there_is_no_poolferry(master: VirtualMachine) -> None:
    """One pool is encrypted by itself, one lies in a LUKS container, one is plain: the keys are all that a person adds."""
    master.pool("tank", "256M")
    master.sh("""set -e; zfs create -o quota=90M tank/photos; zfs create tank/photos/sub; echo one >/tank/photos/sub/one
        head -c 1M /dev/urandom >/tank/photos/large; zfs snapshot -r tank/photos@a; echo two >/tank/photos/two; zfs snapshot -r tank/photos@b""")
    master.job("photos", DATASETS, targets=SET)
    drawer, held, contents = (
        UsbDisks(master),
        guids(master, "tank/photos"),
        "cd /tank/photos && find . -type f | sort | xargs md5sum",
    )
    files = master.sh(contents).text
    disks = {}
    for name, more in MORE.items():
        key = f"/etc/poolferry/keys/{name}"
        if name in KEYS:
            master.write(key, KEYS[name], mode=0o600)
        keyed = ("--key-file", key) if name in KEYS else ()
        disks[name] = drawer.enroll(name, "--content", "zfs", *more, *keyed)
        drawer.replug(disks[name])
        assert drawer.scan()[name]["ending"] == "done"
        master.yank(disks[name])
    master.sh("zpool destroy -f tank; rm -rf /var/lib/poolferry /etc/poolferry/jobs /etc/poolferry/targets.toml")
    for name, disk in disks.items():
        master.plug_usb(disk)
        reach = {
            "red": "zpool import -N poolferry-red && zfs load-key -a",
            "blue": f"cryptsetup open --key-file /etc/poolferry/keys/blue {disk.device} poolferry-blue && zpool import -N poolferry-blue",
            "green": "zpool import -N poolferry-green",
        }[name]
        close = (
            f"zpool export poolferry-{name}; [ ! -e /dev/mapper/poolferry-{name} ] || cryptsetup close poolferry-{name}"
        )
        master.sh(f"{reach} && mount -t zfs -o ro poolferry-{name}/photos/poolferry-kit /mnt", seconds=200)
        page, expected = master.read("/mnt/photos/RECOVERY.md").decode(), master.read("/mnt/photos/guids.tsv")
        master.sh(f"umount /mnt; {close}")
        blocks = [block.partition("```")[0] for block in page.split("```sh\n")[1:]]
        assert len(blocks) == 6, page
        for block in blocks:
            ended = master.sh(block.replace("zpool create", "zpool create -f"), check=False, seconds=300)
            assert ended.code == 0, (name, block, ended)
        assert master.read("/root/poolferry-guids") == expected
        assert (guids(master, "tank/photos"), master.sh(contents).text) == (held, files)
        assert master.sh("zfs get -Hpo value quota tank/photos").text == str(90 << 20)
        master.sh(f"zpool destroy -f tank; {close}")
        master.yank(disk)

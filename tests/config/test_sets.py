"""Rotation sets and their disks in targets.toml, each mistake at its file and line."""

from pathlib import Path

import pytest

from orchestrator.domain.rotation import Disk, RotationSet
from orchestrator.domain.units import Seconds
from tests.config.given import JOB, TARGETS, loaded, refused, told

RED, BLUE = "0b7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4e", "1c7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4f"
GUID = "15440512953407512343"
SET = "[set.offsite]\n"
DISK = f'[disk.red]\nset = "offsite"\nidentity = "{RED}"\n'
SECOND = f'[disk.blue]\nset = "offsite"\nidentity = "{BLUE}"\n'
AIMED = JOB.replace("backup", "offsite")


def test_a_set_without_disks_is_a_target_that_waits(tmp_path: Path) -> None:
    configuration = loaded(tmp_path, AIMED, SET)
    target = configuration.job("photos").target
    assert (target.name, target.rotates, configuration.places) == ("offsite", True, ())
    assert configuration.sets == (RotationSet(name="offsite", disks=()),)


def test_all_of_a_set_is_read(tmp_path: Path) -> None:
    text = f"""[set.offsite]
expect = "fixed"
order = ["blue", "red"]
fresh-within = "7d"
each-within = "30d"
visit-within = "12h"
away-at-least = 1
power-off = false
[disk.red]
set = "offsite"
identity = "{RED.upper()}"
inside = "{BLUE}"
content = "xfs"
key-file = "/keys/red"
note = "red sticker"
[disk.blue]
set = "offsite"
identity = "2c7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4f"
"""
    (found,) = loaded(tmp_path, AIMED, TARGETS + text).sets
    assert (found.expect, found.order) == ("fixed", ("blue", "red"))
    assert (found.fresh_within, found.each_within) == (Seconds(604800), Seconds(2592000))
    assert (found.away_at_least, found.power_off, found.visit_within) == (1, False, Seconds(43200))
    assert found.disk("red") == Disk(
        name="red", set="offsite", identity=RED, content="xfs", inside=BLUE, key_file="/keys/red", note="red sticker"
    )  # fmt: skip
    assert found.disk("red").called == "red (red sticker)"
    assert found.disk("blue").called == "blue"


def test_disks_that_the_order_does_not_name_come_last(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, AIMED, "[set.offsite]\nexpect = 'fixed'\norder = ['blue']\n" + DISK + SECOND).sets
    assert found.order == ("blue", "red")


def test_two_jobs_may_share_a_set_and_their_copies_lie_apart(tmp_path: Path) -> None:
    from orchestrator.config.load import load_configuration
    from tests.config.given import ENGINES, written

    files = {"targets.toml": SET + DISK, "jobs/a.toml": AIMED, "jobs/b.toml": AIMED.replace("photos", "mail")}
    one, other = load_configuration(written(tmp_path, files), ENGINES).jobs
    assert one.target.name == other.target.name == "offsite"
    assert one.target.location != other.target.location


def test_datasets_go_to_disks_with_pools(tmp_path: Path) -> None:
    job = 'engine = "sets"\nsource = "tank/photos"\ntarget = "offsite"\n[sets]\nlabel = "x"\n'
    disk = DISK.replace(RED, GUID) + 'content = "zfs"\n'
    assert not loaded(tmp_path, job, SET + disk).job("photos").target.location.path.startswith("/")
    (mistake,) = refused(tmp_path, job, SET + DISK)
    assert (mistake.line, mistake.key, mistake.what) == (3, "target", 'disk "red" of the set "offsite" holds ext4')
    (mistake,) = refused(tmp_path, AIMED, SET + disk)
    assert (mistake.what, mistake.expected[:35]) == (
        'disk "red" of the set "offsite" holds zfs',
        "disks with ext4, xfs or btrfs, whic",
    )


def test_a_set_may_grow_from_its_first_disk_to_those_that_shall_stay_away(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, AIMED, "[set.offsite]\naway-at-least = 1\nuse-again = true\n" + DISK).sets
    assert (found.away_at_least, found.use_again, len(found.disks)) == (1, True, 1)


def test_a_set_that_no_disk_can_serve_is_told_before_there_is_a_disk(tmp_path: Path) -> None:
    tank = 'engine = "sets"\nsource = "tank/x"\ntarget = "offsite"\n[sets]\nlabel = "nightly"\n'
    (mistake,) = refused(tmp_path, AIMED, SET, tank=tank)
    assert told((mistake,)) == ["tank.toml:3:target"]
    assert 'job "photos" copies files there: no disk can hold both' in mistake.what
    assert "[set.offsite-datasets]" in mistake.expected


MISTAKES = [
    ("[set.offsite]\nexpect = 'newest'\n", 2, "set.offsite.expect", '"newest" does not fit'),
    ("[set.offsite]\nfresh-within = '7x'\n", 2, "set.offsite.fresh-within", '"7x" does not fit'),
    ("[set.offsite]\naway-at-least = -1\n", 2, "set.offsite.away-at-least", "is too small"),
    ("[set.offsite]\naway = 1\n", 2, "set.offsite.away", "unknown key"),
    ("[set.offsite]\nkeep-for = '9d'\n", 2, "set.offsite.keep-for", "means nothing here"),
    ("[set.offsite]\norder = ['red']\n", 2, "set.offsite.order", "means nothing here"),
    (SET + DISK + "days = ['monday']\n", 5, "disk.red.days", "means nothing here"),
    (SET + DISK + "days = ['someday']\n", 5, "disk.red.days", '"someday" does not fit'),
    ("[set.offsite]\nexpect = 'weekday'\n" + DISK, 2, "set.offsite.expect", "no disk of the set has days"),
    ("[set.offsite]\nexpect = 'fixed'\norder = ['x', 'red']\n" + DISK, 3, "set.offsite.order", 'disk "x" is not of this set'),
    ("[set.offsite]\nexpect = 'fixed'\norder = ['red', 'red']\n" + DISK, 3, "set.offsite.order", 'disk "red" stands there twice'),
    (SET + "[disk.red]\nset = 'offsite'\n", 2, "disk.red.identity", "is missing"),
    (SET + DISK.replace(RED, "red"), 4, "disk.red.identity", '"red" does not fit'),
    (SET + DISK.replace(RED, str(1 << 64)), 4, "disk.red.identity", "does not fit"),
    (SET + DISK.replace(RED, GUID), 4, "disk.red.identity", "is the guid of a pool"),
    (SET + DISK + "content = 'zfs'\n", 4, "disk.red.identity", "is no guid of a pool"),
    (SET + DISK + f"content = 'zfs'\ninside = '{BLUE}'\n", 6, "disk.red.inside", "is no guid of a pool"),
    (SET + DISK.replace(RED, GUID) + f"inside = '{BLUE}'\n", 4, "disk.red.identity", "a pool holds no LUKS"),
    (SET + DISK + "key-file = 'keys/red'\n", 5, "disk.red.key-file", '"keys/red" does not fit'),
    (SET + DISK + "content = 'ntfs'\n", 5, "disk.red.content", '"ntfs" does not fit'),
    (SET + DISK.replace('"offsite"', '"ofsite"'), 3, "disk.red.set", 'there is no set "ofsite"'),
    (SET + DISK + SECOND.replace(BLUE, RED.upper()), 7, "disk.blue.identity", "disk red has this identity too"),
    (SET + "[place.offsite]\npath = '/x'\n", 1, "set.offsite", "a place has this name too"),
    (SET + DISK.replace("disk.red", "disk.offsite"), 2, "disk.offsite", "a set has this name too"),
    (SET + "[disk.'a b']\n", 2, 'disk."a b"', "is no name for a disk"),
    (SET + "[disk]\nred = 1\n", 3, "disk.red", "1 does not fit"),
    ("disk = 1\n" + SET, 1, "disk", "1 does not fit"),
    ("[sets.offsite]\n", 1, "sets", "unknown key"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "what"), MISTAKES)
def test_a_mistake_is_told_at_its_line(tmp_path: Path, text: str, line: int, key: str, what: str) -> None:
    mistakes = refused(tmp_path, AIMED, text if text.startswith("disk") else text + TARGETS)
    found = [each for each in mistakes if each.file.endswith("targets.toml") and (each.line, each.key) == (line, key)]
    assert any(what in each.what for each in found), told(mistakes)
    assert all(each.expected for each in found)


def test_the_nearest_of_places_and_sets_is_told(tmp_path: Path) -> None:
    (mistake,) = refused(tmp_path, AIMED.replace("offsite", "ofsite"), TARGETS + SET)
    assert mistake.expected == '"offsite", the nearest name'

"""Accounts of another machine: what getent prints here, and what is said of numbers that are another one's now."""

import json

import pytest

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Pipeline
from orchestrator.engines.zfs.restore.survey import survey_owners
from orchestrator.engines.zfs.restore.uid_map import accounts_command, changed_accounts, owner_warnings, parse_accounts
from orchestrator.process.executor import Reader

THEN = b"""=users
root:x:0:0:root:/root:/bin/bash
toor:x:0:0:another name:/root:/bin/sh
anna:x:1000:1000:Anna:/home/anna:/bin/bash
bert:x:1001:1001::/home/bert:/bin/bash
=groups
root:x:0:
music:x:1005:anna,bert
"""
FOLDER = "on what returns"


def lines(now: bytes) -> list[str]:
    return list(changed_accounts(parse_accounts(THEN), parse_accounts(now)))


def test_all_is_as_it_was() -> None:
    assert lines(THEN) == []
    assert lines(THEN + b"new:x:2000:\n") == [], "who came since is nobody's heir"
    other_way = THEN.replace(b"toor", b"@").replace(b"root:x:0:0", b"toor:x:0:0").replace(b"@", b"root")
    assert lines(other_way) == [], "several names may have one number, in any order"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b"anna:x:1000", b"anna:x:1004",
         ["user anna had the number 1000, which is nobody now, and has 1004: `usermod -u 1000 anna`"]),
        (b"anna:x:1000:1000:Anna:/home/anna:/bin/bash\n", b"",
         ["user anna had the number 1000, which is nobody now: `useradd -u 1000 anna`"]),
        (b"anna:x:1000:", b"carl:x:1000:",
         [f"user anna had the number 1000, which is carl now: make anna, then `chown -hR --from=1000 anna` {FOLDER}"]),
        (b"music:x:1005", b"music:x:1006",
         ["group music had the number 1005, which is nobody now, and has 1006: `groupmod -g 1005 music`"]),
        (b"music:x:1005", b"video:x:1005",
         [f"group music had the number 1005, which is video now: make music, then `chown -hR --from=:1005 :music` {FOLDER}"]),
    ],
)  # fmt: skip
def test_a_number_that_is_not_its_own_any_more(old: bytes, new: bytes, told: list[str]) -> None:
    assert lines(THEN.replace(old, new)) == told


def test_two_that_have_changed_places_are_both_told() -> None:
    swapped = THEN.replace(b"anna:x:1000", b"@").replace(b"bert:x:1001", b"bert:x:1000").replace(b"@", b"anna:x:1001")
    assert lines(swapped) == [
        (
            "user anna had the number 1000, which is bert now, and has 1001: `usermod -u 1000 anna` once bert has another one; "
            f"or `chown -hR --from=1000 anna` {FOLDER}"
        ),
        (
            "user bert had the number 1001, which is anna now, and has 1000: `usermod -u 1001 bert` once anna has another one; "
            f"or `chown -hR --from=1001 bert` {FOLDER}"
        ),
    ]


def test_a_kit_that_knows_one_name_of_each_number() -> None:
    old = {"users": {"1000": "anna", "0": "root"}, "groups": {}}
    assert list(changed_accounts(old, parse_accounts(THEN))) == []
    assert list(changed_accounts(old, parse_accounts(THEN.replace(b"anna", b"bert")))) == [
        f"user anna had the number 1000, which is bert now: make anna, then `chown -hR --from=1000 anna` {FOLDER}"
    ]


def test_of_many_the_first_are_told() -> None:
    then = {"users": {str(number): f"u{number}" for number in range(5000, 5012)}}
    told = owner_warnings(then, parse_accounts(THEN))
    assert (len(told), told[0].split()[1], told[-1]) == (
        9, "u5000", "4 more accounts have another number, or are not there",
    )  # fmt: skip


def test_this_machine_is_asked() -> None:
    here = parse_accounts(Reader().read(Pipeline(stages=(accounts_command(None),))).stdout)
    assert here["users"]["0"] == "root"
    assert survey_owners(json.dumps(here), Location(path="tank/a"), Reader()) == ()
    here["accounts"]["users"]["root"] = "4321"
    (told,) = survey_owners(json.dumps(here), Location(path="tank/a"), Reader())
    assert told == "user root had the number 4321, which is nobody now, and has 0: `usermod -u 4321 root`"
    assert survey_owners("{}", Location(path="tank/a", host=Host(name="nowhere.invalid")), Reader()) == ()

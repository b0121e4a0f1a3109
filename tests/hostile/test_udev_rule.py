"""The rule of udev starts a unit for identities as ours are, and for nothing that only a stranger's disk can have."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "systemd" / "90-poolferry.rules"


def starts(identity: str) -> bool:
    """Return whether the rule names a unit: udev's patterns are those of fnmatch."""
    (rule,) = (line for line in RULES.read_text().splitlines() if line.startswith('ACTION=="add"'))
    tests = re.findall(r'ENV\{ID_FS_UUID\}(==|!=)"([^"]*)"', rule)
    assert tests
    return all(fnmatchcase(identity, pattern) is (sign == "==") for sign, pattern in tests)


@pytest.mark.parametrize(
    "identity",
    [
        pytest.param("5b84968b-37a6-4ab8-983b-6b85978cf439", id="ext4, xfs, LUKS"),
        pytest.param("13061253409281923745", id="a pool"),
    ],
)
def test_an_identity_of_ours_starts_its_unit(identity: str) -> None:
    assert starts(identity)


# libblkid makes the identity of an ISO image of two characters each of its date, whatever they are.
@pytest.mark.parametrize(
    "identity", ["", "202@-01-02-03-04-05-;%", "20$(-id-)x-..-./-\\x-41", "2026-11-25-10-00-00-0g"]
)
def test_another_starts_nothing(identity: str) -> None:
    assert not starts(identity)

"""Test what no stream brings: as `zfs allow`, `zfs holds` and a kit tell it, and the commands that make it again."""

from typing import Any

from orchestrator.engines.zfs.recovery.delegations import (
    compare_delegations,
    count_received,
    parse_delegations,
    user_holds,
)

# As OpenZFS 2.3 prints it.
TOLD = """\
---- Permissions on tank/a b -----------------------------------------
Permission sets:
\t@simple create,mount
Create time permissions:
\tdestroy
Local permissions:
\tuser anna snapshot
Descendent permissions:
\tgroup staff hold
Local+Descendent permissions:
\tuser (unknown: 1234) send
\teveryone userprop
---- Permissions on tank ---------------------------------------------
Local+Descendent permissions:
\tuser anna send
---- Permissions on tank/a b/c ---------------------------------------
Local permissions:
\tuser anna hold
---- Permissions on tank/a b -----------------------------------------
Local permissions:
\tuser anna snapshot
"""


def test_rights_become_the_commands_that_grant_them_again() -> None:
    assert parse_delegations(TOLD.splitlines(), "tank/a b") == {
        "tank/a b": [
            "zfs allow -s @simple create,mount 'tank/a b'",
            "zfs allow -c destroy 'tank/a b'",
            "zfs allow -l -u anna snapshot 'tank/a b'",
            "zfs allow -d -g staff hold 'tank/a b'",
            "zfs allow -u 1234 send 'tank/a b'",
            "zfs allow -e userprop 'tank/a b'",
        ],
        "tank/a b/c": ["zfs allow -l -u anna hold 'tank/a b/c'"],
    }, "each once, and none of what lies above the root"


def test_only_holds_of_others_are_listed() -> None:
    rows = [("tank/a@1", "keep", "Mon"), ("tank/a@1", "poolferry_0000000000000009", "Mon")]
    assert user_holds(rows) == [["tank/a@1", "keep"]]


def kit(**more: Any) -> dict[str, Any]:
    own = {"compression": {"value": "lz4", "received": "-", "source": "local"}}
    return {
        "source": "tank",
        "datasets": {"tank/a": own},
        "snapshots": [["tank/a@1", "11", "1"]],
        "bookmarks": [],
        **more,
    }


def test_what_is_not_there_is_named_with_its_command() -> None:
    then = kit(
        allowed={"tank/a": ["zfs allow -u anna send tank/a"], "tank/gone": ["zfs allow -u anna send tank/gone"]},
        holds=[["tank/a@1", "keep"], ["tank/a@pruned", "keep"]],
        bookmarks=[["tank/a#mine", "11", "1"], ["tank/a#lost", "12", "2"], ["tank/a#poolferry_x", "11", "1"]],
    )
    assert list(compare_delegations(then, kit())) == [
        "tank/a: a right is not delegated: zfs allow -u anna send tank/a",
        "tank/a: a hold is not there: zfs hold keep tank/a@1",
        "tank/a: the bookmark #mine is not there: zfs bookmark tank/a@1 'tank/a#mine'",
        "tank/a: the bookmark #lost is not there: its snapshot is gone, so it cannot be made again",
    ]
    assert list(compare_delegations(then, then)) == []
    assert list(compare_delegations(kit(), then)) == [], "a kit of before knew nothing of them"


def test_values_that_are_received_ones_now_are_counted() -> None:
    now = kit(datasets={"tank/a": {"compression": {"value": "lz4", "received": "lz4", "source": "received"}}})
    assert count_received(kit(), now) == (
        "1 values that were set here are received ones now: `zfs get -r -s received all tank` lists them"
    )
    assert count_received(kit(), kit()) == ""

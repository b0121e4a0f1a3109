"""Test what `check --system` says of the units: installed, of this version, enabled, running."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.app.systemd_state import (
    FORMER_TIMER,
    RULES_FILE,
    SERVICE,
    TIMER,
    Installation,
    SystemdUnit,
    check_units,
    parse_units,
    unit_texts,
)

SHIPPED = compose.shipped_units()
PROGRAM = sys.executable  # anything that can be called
HERE = Installation(
    shipped=SHIPPED, program=PROGRAM, config="/etc/poolferry", state="/var/lib/poolferry", scheduled=True, disks=False
)
TEXTS = unit_texts(SHIPPED, program=PROGRAM, config=HERE.config, state=HERE.state)
NONE = SystemdUnit(state="", active="inactive", stale=False, text="")


def unit(name: str = SERVICE, **more: Any) -> SystemdUnit:
    return SystemdUnit(**{"state": "enabled", "active": "active", "stale": False, "text": TEXTS[name], **more})


def signs(
    service: SystemdUnit, timer: SystemdUnit = NONE, here: Installation = HERE, rule: str = ""
) -> list[tuple[str, str]]:
    """Each finding, with its sign."""
    found = check_units({SERVICE: service, TIMER: timer}, here, rule)
    return [("ok" if each.good else "!!" if each.hinders else "hm", each.text) for each in found]


def test_all_is_well() -> None:
    assert signs(unit()) == [("ok", "poolferry.service is enabled and active")]
    assert signs(NONE, unit(TIMER)) == [("ok", "poolferry-due.timer is enabled and active")]


@pytest.mark.parametrize(
    ("service", "sign", "says"),
    [
        (NONE, "hm", "no unit keeps the jobs' times: `poolferry setup systemd` writes them, then systemctl enable --now"),
        (unit(state="disabled"), "hm", "poolferry.service is installed and not enabled, so nothing runs after the next boot"),
        (unit(active="failed"), "!!", "poolferry.service is enabled, but failed: systemctl status poolferry.service"),
        (unit(text=TEXTS[SERVICE].replace("Nice=5", "Nice=6")), "hm", "poolferry.service is not as this version writes it"),
        (unit(text=TEXTS[SERVICE].replace(PROGRAM, "/nowhere/poolferry")), "!!", "calls /nowhere/poolferry, which is not there"),
        (unit(text=TEXTS[SERVICE].replace(PROGRAM, "/bin/sh")), "hm", "calls /bin/sh, and this is "),
        (unit(stale=True), "hm", "poolferry.service was changed since systemd read it: systemctl daemon-reload"),
    ],
)  # fmt: skip
def test_each_trouble_has_its_sentence(service: SystemdUnit, sign: str, says: str) -> None:
    (found,) = [each for each in signs(service) if each[0] != "ok"]
    assert found[0] == sign
    assert says in found[1]


def test_both_clocks_are_one_too_many() -> None:
    assert signs(unit(), unit(TIMER))[0] == (
        "hm", "both poolferry.service and poolferry-due.timer are enabled, and one is enough: systemctl disable --now poolferry-due.timer",
    )  # fmt: skip


def test_a_timer_under_its_former_name_keeps_the_times_and_is_named() -> None:
    former = SystemdUnit(state="enabled", active="active", stale=False, text="[Timer]\n")
    found = check_units({SERVICE: NONE, TIMER: NONE, FORMER_TIMER: former}, HERE, "")
    assert [each.text for each in found] == [
        "poolferry-owed.timer is enabled and active",
        "poolferry-owed.timer is now called poolferry-due.timer: poolferry setup systemd --timer renames it",
    ]


def test_where_nothing_runs_by_itself_no_unit_is_missed() -> None:
    assert signs(NONE, here=replace(HERE, scheduled=False)) == []
    assert signs(unit(state="disabled"), here=replace(HERE, scheduled=False)) != []


def test_disks_need_udevs_rule() -> None:
    disks = replace(HERE, disks=True)
    assert signs(unit(), here=disks, rule=SHIPPED[RULES_FILE]) == [("ok", "poolferry.service is enabled and active")]
    assert "is missing, so no disk is noticed" in signs(unit(), here=disks)[1][1]
    assert "is not that of this version" in signs(unit(), here=disks, rule="x")[1][1]


TOLD = """Id=poolferry.service
UnitFileState=enabled
ActiveState=active
NeedDaemonReload=no
FragmentPath=/etc/systemd/system/poolferry.service
DropInPaths=/etc/systemd/system/poolferry.service.d/a.conf /etc/systemd/system/poolferry.service.d/b.conf

Id=poolferry-due.timer
UnitFileState=
ActiveState=inactive
NeedDaemonReload=no
FragmentPath=
DropInPaths=
"""


def test_what_systemctl_says() -> None:
    found = parse_units(TOLD, lambda path: f"text of {path.rpartition('/')[2]}")
    assert found == {
        SERVICE: unit(text="text of poolferry.service", more=("text of a.conf", "text of b.conf")),
        TIMER: NONE,
    }

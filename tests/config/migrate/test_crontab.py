"""Lines of crontabs as cron reads them."""

import pytest

from orchestrator.config.migrate.crontab import ScheduledCommand, parse_crontab
from orchestrator.config.migrate.time_span import late_after, parse_calendar, parse_when


def found(text: str, file: str = "cron") -> list[ScheduledCommand | tuple[int, str]]:
    return list(parse_crontab(file, text))


def one(text: str, file: str = "cron") -> ScheduledCommand:
    (only,) = found(text, file)
    assert isinstance(only, ScheduledCommand)
    return only


def test_a_persons_line_and_one_of_cron_d() -> None:
    assert one("# m h\n30 2 * * * /usr/sbin/syncoid -r a/b c/d\n") == ScheduledCommand(
        where="cron:2", when="30 2 * * *", schedule="30 2 * * *", command="/usr/sbin/syncoid -r a/b c/d"
    )
    assert one("30 2 * * * root syncoid a/b c/d").user == "root"
    assert one("@daily nice -n 19 syncoid a/b c/d").user == ""
    assert one("@daily\tnice -n 19 syncoid a/b c/d", "/etc/cron.d/x").user == "nice"


@pytest.mark.parametrize(
    ("when", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@midnight", "0 0 * * *"),
        ("*/15 * * * mon-fri", "*/15 * * * mon-fri"),
        ("@reboot", None),
        ("61 * * * *", None),
    ],
)
def test_when(when: str, fields: str | None) -> None:
    assert parse_when(when) == fields
    assert one(f"{when} syncoid a b").schedule == fields


def test_settings_hold_for_the_lines_below() -> None:
    first, second = found('0 1 * * * a\nMAILTO = "me@example.org"\nPOOL=tank\n0 2 * * * b\n')
    assert isinstance(first, ScheduledCommand)
    assert isinstance(second, ScheduledCommand)
    assert (first.mailto, dict(first.variables)) == ("", {})
    assert (second.mailto, second.variables["POOL"]) == ("me@example.org", "tank")


def test_percent_signs() -> None:
    assert one(r"0 1 * * * syncoid 'a\%b' c\%d %its input").command == "syncoid 'a%b' c%d "


@pytest.mark.parametrize("line", ["syncoid a b", "@daily", "1 2 3 4", "0 1 * * *"])
def test_what_is_no_line(line: str) -> None:
    assert [each if isinstance(each, tuple) else each.command for each in found(line)] in (
        [(1, "is no line of a crontab")],
        [""],
    )


@pytest.mark.parametrize(
    ("calendar", "fields"),
    [
        ("daily", "0 0 * * *"),
        ("*-*-* 02:30:00", "30 2 * * *"),
        ("02:30", "30 2 * * *"),
        ("*:0/15", "*/15 * * * *"),
        ("*-*-* 00/6:00:00", "0 */6 * * *"),
        ("Mon..Fri 02:30", "30 2 * * mon-fri"),
        ("Mon,Thu *-*-* 01:05", "5 1 * * mon,thu"),
        ("Sunday 03:00", "0 3 * * sun"),
        ("Sat", "0 0 * * sat"),
        ("*-*-01 04:00:00", "0 4 1 * *"),
        ("*-1,7-1 3:00", "0 3 1 1,7 *"),
        ("2024-01-01 00:00", None),
        ("*-*-* 2:00:30", None),
        ("*:3/15", None),
        ("", None),
    ],
)
def test_calendars_of_systemd(calendar: str, fields: str | None) -> None:
    assert parse_calendar(calendar) == fields


@pytest.mark.parametrize(
    ("schedule", "late"),
    [
        ("*/15 * * * *", "2h"),
        ("5 * * * *", "2h"),
        ("0 */4 * * *", "8h"),
        ("30 2 * * *", "26h"),
        ("0 9,17 * * *", "18h"),
        ("0 1 * * 1-5", "74h"),
        ("0 1 * * 0", "8d"),
        ("0 1 1 * *", "32d"),
        ("0 1 1 1,7 *", "218d"),
    ],
)
def test_late_after_the_longest_span_and_some_more(schedule: str, late: str) -> None:
    assert late_after(schedule) == late
    assert late_after(None, "10m") == "2h"
    assert late_after(None) is None

"""quiet-hours: the edges of each window, and every wrong one refused."""

import subprocess
from typing import Any

import pytest

DAY, NIGHT = "08:00-18:00", "22:00-06:00"


@pytest.mark.parametrize(
    ("window", "now", "quiet"),
    [
        (DAY, "07:59", False),
        (DAY, "08:00", True),
        (DAY, "09:08", True),  # 08 and 09 are no octal numbers
        (DAY, "17:59", True),
        (DAY, "18:00", False),
        (NIGHT, "21:59", False),
        (NIGHT, "22:00", True),
        (NIGHT, "00:00", True),
        (NIGHT, "05:59", True),
        (NIGHT, "06:00", False),
        ("00:00-24:00", "00:00", True),
        ("18:00-24:00", "23:59", True),
        ("18:00-24:00", "00:00", False),
        ("18:00-00:00", "23:59", True),
        ("18:00-00:00", "00:00", False),
    ],
)
def test_a_window_and_its_opposite(hook: Any, window: str, now: str, quiet: bool) -> None:
    inside = hook("quiet-hours", "--now", now, window, event="before")
    outside = hook("quiet-hours", "--only", "--now", now, window, event="before")
    assert (inside.returncode, outside.returncode) == ((75, 0) if quiet else (0, 75))
    told = inside if quiet else outside
    assert now in told.stdout
    assert window in told.stdout
    assert len(told.stdout.splitlines()) == 1


def test_several_windows(hook: Any) -> None:
    windows = ("08:00-12:00", "13:00-17:30")
    for now, status in (("09:00", 75), ("12:30", 0), ("17:29", 75), ("17:30", 0)):
        assert hook("quiet-hours", "--now", now, *windows, event="before").returncode == status


def test_without_now_the_clock_of_the_machine_decides(hook: Any) -> None:
    assert hook("quiet-hours", "00:00-24:00", event="before").returncode == 75
    assert hook("quiet-hours", "--only", "00:00-24:00", event="before").returncode == 0
    before, said, after = (
        subprocess.run(["date", "+%H:%M"], capture_output=True, text=True, check=True).stdout.strip(),
        hook("quiet-hours", "00:00-24:00", event="before").stdout,
        subprocess.run(["date", "+%H:%M"], capture_output=True, text=True, check=True).stdout.strip(),
    )
    assert before in said or after in said


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("8:00-18:00",),
        ("08:00",),
        ("08:00-18:00-20:00",),
        ("25:00-26:00",),
        ("08:60-09:00",),
        ("08:00-08:00",),
        ("08:00-18:00\n",),
        ("--no", DAY),
        ("--now",),
        ("--now", "noon", DAY),
        (DAY, "x-y"),
        ("$(id)-18:00",),
    ],
)
def test_wrong_usage_is_2_and_says_what_is_expected(hook: Any, argv: tuple[str, ...]) -> None:
    end = hook("quiet-hours", *argv, event="before")
    assert (end.returncode, end.stdout) == (2, "")
    assert "expected [--only]" in end.stderr

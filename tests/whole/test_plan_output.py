"""`poolferry plan` as a person reads it: no line wider than 200 characters, whatever lies there."""

import os
import re
import subprocess

import pytest

from tests.whole.house import House


def plan_text(house: House, *words: str) -> str:
    argv = [word for word in house.argv("plan", "photos", *words) if word != "--json"]
    environment = {**house.environment, "COLUMNS": "400"}
    told = subprocess.run(argv, capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told
    return told.stdout


@pytest.mark.parametrize(
    "rsync", [{}, {"points": False, "delete": True}, {"parallel": 3}], ids=["points", "mirror", "lanes"]
)
def test_no_line_of_a_plan_is_wider_than_200(house: House, rsync: dict[str, object]) -> None:
    for number in range(5):
        house.write(f"folder {number}/{'long ' * 20}", os.urandom(1000))
    house.run(house.job(rsync=rsync))
    house.write("x", os.urandom(5000))
    work = house.target / ".poolferry/work"
    work.mkdir()
    if "points" not in rsync:
        (work / ".x.AbC123").write_bytes(bytes(5000))
        (work / ".gone.AbC123").write_bytes(b"x")
    told = plan_text(house)
    assert re.search(r"prepare.sh \S", told)
    assert [line for line in told.splitlines() if len(line) > 200] == []
    assert "mkdir -p" in plan_text(house, "--verbose")

"""The alerts and the dashboard that are shipped: each number that they ask for exists, and each alert fires in time."""

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.views.metrics import MetricsInput, families
from tests.app.prometheus import PROMTOOL

HERE = Path(__file__).resolve().parents[2] / "systemd" / "monitoring"
RULES = (HERE / "alerts.yml").read_text()
BOARD: dict[str, Any] = json.loads((HERE / "dashboard.json").read_text())
NAME = re.compile(r"\bpoolferry_\w+")


def known() -> set[str]:
    """Every name that is told, also of what nobody has a number for yet."""
    measured = MetricsInput(standing=(), totals=(), due={}, queued=0, now=datetime(2026, 11, 20, tzinfo=UTC))
    return {family.name + ("_total" if family.type == "counter" else "") for family in families(measured)}


def requested() -> list[str]:
    """Every expression of the dashboard."""
    panels = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    return panels + [each["definition"] for each in BOARD["templating"]["list"] if "definition" in each]


def test_each_number_that_is_asked_for_exists() -> None:
    expressions = re.findall(r"expr: (.+)", RULES)
    assert len(expressions) == RULES.count("- alert:")
    for text in (*expressions, *requested()):
        names = set(NAME.findall(text))
        assert names, text
        assert names <= known(), text


def test_the_dashboard_can_be_imported() -> None:
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    at = [panel["gridPos"] for panel in BOARD["panels"]]
    taken = [(p["x"] + right, p["y"] + down) for p in at for right in range(p["w"]) for down in range(p["h"])]
    assert len(set(taken)) == len(taken), "panels lie on each other"
    sources = {json.dumps(target["datasource"]) for panel in BOARD["panels"] for target in panel["targets"]}
    assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}


def test_each_alert_is_tested() -> None:
    alerts = set(re.findall(r"- alert: (\w+)", RULES))
    fired = re.findall(r"alertname: (\w+)\n +eval_time: \w+\n +exp_alerts", (HERE / "alerts_test.yml").read_text())
    assert alerts == set(fired)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")])
def test_promtool_agrees(words: tuple[str, ...]) -> None:
    checked = subprocess.run([PROMTOOL, *words], cwd=HERE, capture_output=True, text=True, timeout=110)
    assert checked.returncode == 0, checked.stdout + checked.stderr

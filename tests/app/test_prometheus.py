"""The shipped alerts and dashboard on a real Prometheus, which scrapes two machines by node_exporter as everybody does."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.prometheus import Prometheus, prometheus
from tests.ferry import Ferry

MONITORING = Path(__file__).resolve().parents[2] / "systemd" / "monitoring"
BOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())


@pytest.fixture
def scraped(ferry: Ferry, tmp_path: Path) -> Iterator[Prometheus]:
    """Two machines with the same two jobs, one of which fails on both."""
    folders = [tmp_path / name for name in ("one", "two")]
    source = ferry.job()
    ferry.job("mail", 'late-after = "26h"\n')
    assert ferry.run("run", "photos", "mail").code == 0
    shutil.rmtree(source)
    assert ferry.run("run", "photos").code == 3
    for folder in folders:
        folder.mkdir()
        assert ferry.run("metrics", "--textfile", str(folder / "poolferry.prom")).code == 0
    with prometheus(tmp_path, folders, MONITORING / "alerts.yml") as server:
        server.wait_for("poolferry_build_info", 2)
        yield server


def test_an_ordinary_scrape_leaves_each_job_its_name(scraped: Prometheus) -> None:
    states = scraped.series("poolferry_job_state == 1")
    assert (
        sorted((each["backup_job"], each["state"]) for each in states)
        == [("mail", "up")] * 2 + [("photos", "failing")] * 2
    )
    assert {each["job"] for each in states} == {"node"}
    every = scraped.series('{__name__=~"poolferry_.+"}')
    assert not [each for each in every if any(name.startswith("exported_") for name in each)]
    pending = scraped.wait_for('ALERTS{alertname="PoolferryJobFailing"}', 2)
    assert {each["backup_job"] for each in pending} == {"photos"}


def test_every_question_of_the_dashboard_is_answered(scraped: Prometheus) -> None:
    """A label that two machines share must not make one question ambiguous ("many-to-many")."""
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$instance", ".*").replace("$job", ".*").replace("$__range", "1h")
            assert isinstance(scraped.ask("query", query=text)["result"], list), panel["title"]
    for rule in scraped.ask("rules")["groups"][0]["rules"]:
        assert rule["health"] == "ok", rule

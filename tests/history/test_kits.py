"""Recovery kits in the history: the newest of each job."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.domain.kit import KitContents
from orchestrator.history.store import open_history
from orchestrator.history.views import open_reader

NOW = datetime(2026, 1, 2, tzinfo=UTC)
KIT = KitContents(content="{}", layout="zpool create tank", recovery="# \udcff", guids="a\t1\n")


def test_the_newest_kit_of_each_job_is_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "history.sqlite")
    with open_history(path) as history:
        assert history.kits.of("photos") is None
        history.kits.keep("photos", KIT, NOW)
        history.kits.keep("music", replace(KIT, guids=""), NOW)
        history.kits.keep("photos", replace(KIT, layout="other"), NOW + timedelta(days=1))
    with open_reader(path) as views:
        found = views.kits.of("photos")
        assert found is not None
        assert (found.kit, found.made_at) == (replace(KIT, layout="other"), NOW + timedelta(days=1))
        other = views.kits.of("music")
        assert other is not None
        assert other.kit.guids == ""

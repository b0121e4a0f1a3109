"""Pools that are being made anew, in the history."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.history.store import open_history
from orchestrator.history.views import open_reader

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_what_is_known_of_a_pool_until_all_of_it_is_back(tmp_path: Path) -> None:
    path = str(tmp_path / "history.sqlite")
    with open_history(path) as history:
        assert history.rebuilds.of("tank") is None
        history.rebuilds.end("tank", NOW)
        history.rebuilds.keep("tank", top_guid=(1 << 64) - 1, lost=(), kits={}, now=NOW)
        history.rebuilds.keep("other", top_guid=None, lost=(), kits={}, now=NOW)
        later = NOW + timedelta(hours=1)
        history.rebuilds.keep("tank", top_guid=7, lost=("tank/x",), kits={"photos": "\udcff{}"}, now=later)
    with open_reader(path) as views:
        found = views.rebuilds.of("tank")
        assert found is not None
        assert (found.top_guid, found.lost, found.begun_at) == (7, ("tank/x",), later)
        assert found.kits == {"photos": "\udcff{}"}
        assert views.rebuilds.of("other") is not None
    with open_history(path) as history:
        history.rebuilds.end("tank", later)
        assert history.rebuilds.of("tank") is None
        history.rebuilds.keep("tank", top_guid=8, lost=(), kits={}, now=later)
        again = history.rebuilds.of("tank")
        assert again is not None
        assert again.id != found.id

"""What every test stands on: a home, a configuration and a state of its own.

Changes things.
"""

import os
import signal
import tempfile
from pathlib import Path

import pytest

ELSEWHERE = {
    "XDG_CONFIG_HOME": "config",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
    "XDG_DATA_HOME": "data",
    "POOLFERRY_CONFIG": "etc",
    "POOLFERRY_STATE": "lib",
}
# A shell's background job ignores SIGINT, and what nohup started SIGHUP, with every program they start: ours are to hear them.
for heard, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(heard) is signal.SIG_IGN:
        signal.signal(heard, handler)

HERE = Path(__file__).parent
# What starts programs again and again, or waits for their end: `make check` leaves it out.
SLOW = (
    "engines/zfs/test_chaos",
    "engines/zfs/test_rehearsing",
    "engines/zfs/test_scripts",
    "history/test_crash",
    "hooks/",
    "interfaces/test_bringing",
    "interfaces/test_delivering",
    "interfaces/test_import_syncoid",
    "interfaces/test_kits",
    "interfaces/test_members",
    "interfaces/test_metrics",
    "interfaces/test_noticing",
    "interfaces/test_pings",
    "interfaces/test_pool_watch",
    "interfaces/test_running",
    "interfaces/test_scheduling",
    "interfaces/test_scraping",
    "interfaces/test_signals",
    "notices/test_letter",
    "notices/test_web",
    "planners/test_two_years",
    "process/test_ending",
    "process/test_meter",
    "process/test_writer",
    "runner/test_showing",
    "runner/test_watching",
    "targets/test_hands",
    "verify/test_reading",
    "whole/",
)
QUICK = ("whole/test_local_story",)


def pytest_configure(config: pytest.Config) -> None:
    """Random examples have no deadline: on a busy machine it tells of the machine only."""
    if config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import settings

        settings.register_profile("patient", deadline=None)
        settings.load_profile("patient")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's home: beside tmp_path, so that tmp_path itself starts empty.

    Why: for root the defaults are /etc and /var/lib, which no HOME moves; so both are named outright.
    """
    home = tmp_path.with_name(tmp_path.name + "-home")
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("POOLFERRY_", "XDG_", "SSH_AUTH"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    for name, folder in ELSEWHERE.items():
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return home


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `root` are left out for everybody else, and say so; whole runs are slow, but for their story."""
    for item in items:
        where = str(item.path.relative_to(HERE))
        if where.startswith(SLOW) and not where.startswith(QUICK):
            item.add_marker(pytest.mark.slow)
        if os.geteuid() != 0 and item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))

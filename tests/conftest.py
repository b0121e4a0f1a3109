"""The ground of every test: a home, a configuration and a state of its own."""

import functools
import gc
import itertools
import os
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.ferry import Ferry
from tests.leftovers import folder_of_runs, let_go_of_mounts, take_own_mounts
from tests.peers import MailServer, WebPeer, serving
from tests.turns import take_samples

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
_FOLDERS = itertools.count()
# What starts programs again and again, or waits for their end: `make check` leaves it out.
SLOW = (
    "fleet/",
    "hostile/",
    "engines/zfs/test_chaos",
    "engines/zfs/drill/test_drill",
    "engines/zfs/commands/test_scripts",
    "gate/test_recorded_answers",
    "gate/test_session",
    "history/test_connections",
    "history/test_crash",
    "hooks/",
    "config/test_bad_input",
    "cli/test_init",
    "cli/test_restore",
    "cli/test_usage",
    "cli/test_start",
    "cli/test_watch",
    "app/test_notify_queue",
    "cli/test_import",
    "cli/test_kit",
    "cli/test_manual",
    "app/test_disk_status",
    "app/test_files_beside",
    "app/test_last_look",
    "app/test_late_job",
    "app/test_stray_copies",
    "app/test_metrics",
    "app/test_month_report",
    "app/test_notify",
    "app/test_heartbeat",
    "app/test_pool_watch",
    "app/test_prometheus",
    "app/test_use_cases",
    "app/test_run_jobs",
    "cli/test_evacuate",
    "cli/test_schedule",
    "config/test_locate",
    "daemon/test_control_socket",
    "daemon/test_metrics_server",
    "engines/rsync/test_copy_ahead",
    "engines/rsync/test_large_ahead",
    "engines/rsync/test_linked_copy",
    "engines/rsync/test_tree_splitter",
    "app/test_signals",
    "notices/test_mail",
    "notices/test_http_channel",
    "planners/test_two_years",
    "process/test_run_apart",
    "process/test_terminate",
    "process/test_meter",
    "process/test_reader",
    "process/test_relay",
    "process/test_vitals",
    "process/test_writer",
    "runner/restore/test_snapshot_files",
    "runner/disk/test_lease",
    "runner/disk/test_removal_watch",
    "runner/test_dry_run",
    "runner/test_locks",
    "runner/test_source_freeze",
    "disks/test_run",
    "schedule/test_triggers",
    "verify/test_build",
    "verify/test_completeness",
    "verify/test_entry",
    "verify/test_read",
    "verify/test_tree_attributes",
    "verify/test_workers",
    "web/test_acts",
    "web/test_aria",
    "web/test_browser",
    "web/test_connections",
    "web/test_guard",
    "web/test_points",
    "web/test_live_browser",
    "web/test_pages",
    "web/test_proxy",
    "web/test_routes",
    "web/test_server",
    "web/test_sessions_browser",
    "whole/",
    "trees/test_local_target",
    "test_fork_server",
)


def pytest_configure(config: pytest.Config) -> None:
    """Random examples have no deadline: on a busy machine it tells of the machine only. Nothing is garbage while tests are collected."""
    gc.disable()
    if config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import settings

        settings.register_profile("patient", deadline=None)
        settings.load_profile("patient")
    if not hasattr(config, "workerinput"):  # once, before pytest removes the folders of earlier runs
        let_go_of_mounts(folder_of_runs())
    take_own_mounts()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each test, as pytest's own fixture makes it.

    Why not that one: for each folder it lists all that there are, and each of thousands of tests has one.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}-{next(_FOLDERS)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of all tests of a process that ask for no folder: they write nothing."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def own_home(request: pytest.FixtureRequest, shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's home: beside tmp_path, so that tmp_path itself starts empty.

    Why: for root the defaults are /etc and /var/lib, which no HOME moves; so both are named outright.
    Why not one for each test: thousands of them ask for no folder, and to make and remove two takes longer than most of them.
    """
    temporary = home = shared_home
    if "tmp_path" in request.fixturenames:
        temporary = request.getfixturevalue("tmp_path")
        home = temporary.with_name(temporary.name + "-home")
        home.mkdir()
    for name in [name for name in os.environ if name.startswith(("POOLFERRY_", "XDG_", "SSH_AUTH"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    for name, folder in ELSEWHERE.items():
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return home


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read what is slow where it is left out: half of the time until the first test goes into reading."""
    if "not slow" not in config.option.markexpr or not collection_path.is_relative_to(HERE):
        return None
    return f"{collection_path.relative_to(HERE)}{'/' * collection_path.is_dir()}".startswith(SLOW) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `root` are left out for everybody else, and say so; whole runs are slow."""
    for item in items:
        where = str(item.path.relative_to(HERE))
        if where.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        if os.geteuid() != 0 and item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs root"))
        if not _root_is_mounted() and item.get_closest_marker("namespace"):
            why = "the root folder is no mount point here (a chroot): no mount namespace, no word of the kernel on what holds a path"
            item.add_marker(pytest.mark.skip(reason=why))
    take_samples(items)


def pytest_collection_finish() -> None:
    """Freeze the thousands of tests, so that the collector of garbage does not look at each of them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Lets go of what a test that failed left open: what Python says of it then must not make the next one fail, too."""
    if hasattr(sys, "last_traceback"):
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            sys.__dict__.pop(name, None)
        with warnings.catch_warnings(action="ignore", category=ResourceWarning):
            gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true a test that is skipped has failed: a machine that lacks something must not look like one that has it."""
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome, report.longrepr = "failed", f"no test may be skipped here: {why}"
    return report


@functools.cache
def _root_is_mounted() -> bool:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split(" ")[4] == "/" for line in lines)


@pytest.fixture
def ferry(tmp_path: Path) -> Ferry:
    """A configuration without jobs yet."""
    return Ferry(tmp_path)


@pytest.fixture
def server() -> Iterator[MailServer]:
    """A mail server without TLS."""
    with serving() as peer:
        yield peer


@pytest.fixture
def web() -> Iterator[WebPeer]:
    """A web peer, ended afterwards."""
    peer = WebPeer()
    yield peer
    peer.close()

"""btrbk.conf: listed, or by consent jobs that copy live subvolumes."""

from pathlib import Path

import pytest

from orchestrator.config.migrate.btrbk import import_btrbk
from orchestrator.config.migrate.program_calls import ImportedSettings
from tests.config.migrate.imported import ENGINES, ImportedFiles, imported

CONF = """\
target_preserve 20d 10w *m   # all
ssh_identity /etc/btrbk/id
volume /mnt/pool
  target send-receive /mnt/backup
  subvolume home
    target_preserve 14d 8w
    target ssh://nas.lan/mnt/backup
  subvolume rootfs
volume /mnt/other
  subvolume alone
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(folder: Path, text: str = CONF, *, live: bool = True) -> ImportedFiles:
    settings = ImportedSettings(files=[("btrbk.conf", text)], crontabs=[("cron", "0 1 * * * root btrbk run\n")])
    return imported(import_btrbk(settings, ENGINES, live=live), folder)


def test_without_consent_all_is_listed(folder: Path) -> None:
    made = run(folder, live=False)
    assert made.jobs == {}
    assert [line.partition(": ")[0] for line in made.lost] == ["btrbk.conf:10", "btrbk.conf:5", "btrbk.conf:8"]
    assert not folder.exists()


def test_with_it_live_subvolumes_are_copied(folder: Path) -> None:
    made = run(folder)
    assert made.jobs["home"] == {
        "engine": "rsync", "source": "/mnt/pool/home", "target": "home-copies", "schedule": "0 1 * * *", "late-after": "26h",
        "keep": {"daily": 14, "weekly": 8},
    }  # fmt: skip
    assert made.jobs["home-to-nas.lan"]["pipe"] == {"ssh-options": ["-i", "/etc/btrbk/id"]}
    assert "keep" not in made.jobs["rootfs"]
    assert made.places["home-to-nas.lan-copies"] == "ssh://nas.lan/mnt/backup/poolferry/home-to-nas.lan"
    assert made.lost == [
        "btrbk.conf:10: is not carried over: /mnt/other/alone has no target: poolferry takes no btrfs snapshots"
    ]
    assert any("not a snapshot" in line for line in made.told)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("  subvolume vm-*\n    target /mnt/x", "one folder"),
        ("archive_exclude x", "no equivalent"),
        ("  subvolume srv\n    target relative/path", "no whole path"),
    ],
)
def test_what_is_lost_has_its_line(folder: Path, line: str, why: str) -> None:
    assert any(each.startswith("btrbk.conf:11: ") and why in each for each in run(folder, CONF + line + "\n").lost)

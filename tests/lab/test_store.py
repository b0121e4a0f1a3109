"""Images are built once, never half, and go when nobody uses them; machines end with whoever started them. No QEMU needed."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import recipe
from tests.lab.common import CHECKOUT, LabError
from tests.lab.kernel import _entry
from tests.lab.requirements import runtime_requirements
from tests.lab.store import Store
from tests.processes import strays
from tests.whole.house import wait_until

Built = Callable[[Path, str, Callable[[str], None]], None]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store of its own."""
    return Store(folder=tmp_path / "lab", notify=lambda _: None)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return where something was built: every image is one file."""
    made: list[Path] = []

    def build(folder: Path, flavour: str, notify: Callable[[str], None]) -> None:
        made.append(folder)
        time.sleep(0.05)
        (folder / "root.raw").write_text(flavour)

    monkeypatch.setattr("tests.lab.store.build_image", build)
    return made


def test_an_image_is_built_once_even_for_two_at_once(store: Store, builds: list[Path]) -> None:
    both = [threading.Thread(target=store.image, args=("trixie",)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(builds) == 1
    assert (store.image("trixie") / "root.raw").read_text() == "trixie"
    assert store.image("bookworm") != store.image("trixie")


def test_a_failed_build_is_not_an_image(store: Store, builds: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path, flavour: str, notify: Callable[[str], None]) -> None:
        (folder / "root.raw").write_text("half")
        raise LabError("no space")

    with monkeypatch.context() as failing:
        failing.setattr("tests.lab.store.build_image", fail)
        with pytest.raises(LabError, match="no space"):
            store.image("trixie")
    assert not store.image_folder("trixie").exists()
    assert (store.image("trixie") / "root.raw").read_text() == "trixie"
    assert list(store.folder.glob(".making-*")) == []


def test_an_image_unused_for_a_day_goes_and_another_checkout_keeps_its_own(store: Store, builds: list[Path]) -> None:
    old, recent, other = (store.folder / name for name in ("trixie-old", "trixie-recent", "bookworm-old"))
    for place, hours in ((old, 25), (recent, 1), (other, 25)):
        place.mkdir(parents=True)
        (place / "used").touch()
        os.utime(place / "used", (time.time() - 3600 * hours,) * 2)
    store.image("trixie")
    assert (old.exists(), recent.exists(), other.exists()) == (False, True, True)


def test_the_key_follows_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(flavour: str = "trixie") -> str:
        recipe.image_key.cache_clear()
        return recipe.image_key(flavour)

    guest = tmp_path / "guest"
    shutil.copytree(recipe.GUEST, guest)
    monkeypatch.setattr(recipe, "GUEST", guest)
    keys = [key(), key("bookworm")]
    (guest / "network").write_text("#!/bin/sh\n")
    keys.append(key())
    monkeypatch.setattr(recipe, "TOOLS", ())
    keys.append(key())
    monkeypatch.setattr(recipe, "runtime_requirements", lambda: "click==1")
    keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key() == keys[-1]
    recipe.image_key.cache_clear()


def test_only_what_runs_need_goes_into_the_guest() -> None:
    named = {line.partition("==")[0] for line in runtime_requirements().splitlines() if not line[0].isspace()}
    assert {"blake3", "click", "rich", "xxhash", "pygments"} <= named
    assert not {"pytest", "mypy", "ruff"} & named
    assert runtime_requirements().count("--hash=sha256:") > len(named)


def test_the_initramfs_is_an_archive_that_cpio_rules_accept() -> None:
    whole = b"".join(_entry(1, b"m/0.ko\0", b"12345"))
    assert len(whole) % 4 == 0
    assert whole[:6] == b"070701"
    assert int(whole[6 + 8 * 6 : 6 + 8 * 7], 16) == 5
    assert whole[110:117] == b"m/0.ko\0"
    assert whole[120:125] == b"12345"


def test_machines_end_with_whoever_started_them() -> None:
    program = (
        "import subprocess, time\n"
        "from tests.lab.watched import WatchedFolder\n"
        "folder = WatchedFolder()\n"
        "run = folder.path / '1' / 'master'\n"
        "run.mkdir(parents=True)\n"
        "(run / 'pid').touch()\n"
        "quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}\n"
        "machine = subprocess.Popen(['tail', '-f', run / 'pid'], start_new_session=True, **quiet)\n"
        "(run / 'pid').write_text(str(machine.pid))\n"
        "print(folder.path, flush=True)\n"
        "time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=CHECKOUT, text=True)
    try:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        wait_until(lambda: len(strays(folder)) == 2, 10)  # the machine and the watcher
    finally:
        owner.kill()
        owner.communicate()
    wait_until(lambda: not strays(folder) and not folder.exists(), 10)

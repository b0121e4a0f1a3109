"""pool-resilvering: not now while a pool resilvers, here or on a host; the real thing is in the lab."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hooks.conftest import PATH, Answer

# Recorded on OpenZFS 2.3, shortened; a rebuild's words are those of its source.
SOUND = (
    "  pool: {pool}\n state: ONLINE\n  scan: resilvered 601M in 00:00:07 with 0 errors on Fri Nov 20 18:41:23 2026\n"
)
BUSY = (
    "  pool: {pool}\n state: ONLINE\n  scan: resilver in progress since Fri Nov 20 18:41:16 2026\n"
    "\t601M / 601M scanned, 18.0M / 601M issued at 9.02M/s\n\t18.1M resilvered, 3.00% done, no estimated completion time\n"
)
REBUILD = BUSY.replace("resilver in", "resilver (mirror-0) in")
SCRUB = BUSY.replace("resilver in", "scrub in")


@pytest.fixture
def pools(tmp_path: Path) -> Callable[..., str]:
    """A PATH with a zpool that knows these pools, and an ssh that runs what it is told here and notes it."""

    def made(**told: str) -> str:
        folder = tmp_path / "bin"
        folder.mkdir()
        cases = "".join(f"{pool}) printf %s {shlex.quote(text.format(pool=pool))};;\n" for pool, text in told.items())
        (folder / "zpool").write_text(f'#!/bin/sh\ncase $2 in\n{cases}*) echo "no such pool" >&2; exit 1;;\nesac\n')
        (folder / "ssh").write_text(
            f'#!/bin/sh\necho "$*" > {tmp_path}/asked\nfor last; do :; done\nPATH={folder}:$PATH exec sh -c "$last"\n'
        )
        for name in ("zpool", "ssh"):
            (folder / name).chmod(0o755)
        return f"{folder}:{PATH}"

    return made


@pytest.mark.parametrize("busy", [BUSY, REBUILD])
@pytest.mark.parametrize("side", ["source", "target"])
def test_not_now_while_either_side_resilvers(
    hook: Callable[..., Answer], pools: Callable[..., str], busy: str, side: str
) -> None:
    told = {"tank": SOUND, "vault": SOUND} | {"tank" if side == "source" else "vault": busy}
    end = hook("pool-resilvering", event="before", path=pools(**told), source="tank/photos", target="vault/photos")
    assert end.returncode == 75
    assert end.stdout == f"{'tank' if side == 'source' else 'vault'} resilvers, 3.00% done\n"


@pytest.mark.parametrize("told", [SOUND, SCRUB])
def test_a_scrub_or_a_resilver_that_ended_stops_nobody(
    hook: Callable[..., Answer], pools: Callable[..., str], told: str
) -> None:
    path = pools(tank=told, vault=told)
    end = hook("pool-resilvering", event="before", path=path, source="tank/photos", target="vault/photos")
    assert (end.returncode, end.stdout) == (0, "")


def test_a_host_is_asked_by_ssh(hook: Callable[..., Answer], pools: Callable[..., str], tmp_path: Path) -> None:
    path = pools(tank=SOUND, vault=BUSY)
    far = "ssh://root@backup:2222/vault/photos"
    end = hook("pool-resilvering", event="before", path=path, source="tank/photos", target=far)
    assert (end.returncode, end.stdout) == (75, "vault on root@backup resilvers, 3.00% done\n")
    assert "-p 2222 -- root@backup " in (tmp_path / "asked").read_text()
    end = hook("pool-resilvering", event="before", path=path, source="ssh://backup/vault/a", target="tank/b")
    assert end.returncode == 75
    assert "-p" not in (tmp_path / "asked").read_text()


def test_named_pools_and_paths(hook: Callable[..., Answer], pools: Callable[..., str], tmp_path: Path) -> None:
    path = pools(tank=SOUND, vault=BUSY)
    assert hook("pool-resilvering", "tank", event="before", path=path, source="vault/a").returncode == 0
    assert hook("pool-resilvering", "tank", "vault", event="before", path=path).returncode == 75
    plain = {"source": str(tmp_path), "target": str(tmp_path / "not-there")}
    assert hook("pool-resilvering", event="before", path=path, **plain).returncode == 0
    assert hook("pool-resilvering", "--all", event="before", path=path).returncode == 2


def test_a_pool_that_does_not_answer_is_the_runs_matter(hook: Callable[..., Answer], pools: Callable[..., str]) -> None:
    end = hook("pool-resilvering", event="before", path=pools(vault=SOUND), source="gone/a", target="vault/a")
    assert (end.returncode, end.stdout) == (0, "gone did not answer: no such pool\n")

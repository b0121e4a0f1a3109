"""Logins and requests of each kind of run, as sshd counts them: never more than one login, and with nothing to do three requests at most."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.adding_gate import gate
from tests.whole.house import House
from tests.whole.sshd import Sshd
from tests.whole.zfs_stand_in import ZfsStandIn, in_place

pytestmark = [pytest.mark.slow, pytest.mark.namespace, pytest.mark.root]
DATASETS = ("tank/mine", "tank/mine/one", "tank/mine/two")


class Counted:
    """Commands of a house, each with the logins and requests that it took at the server."""

    def __init__(self, house: House, server: Sshd) -> None:
        self._house, self._log = house, server.folder / "log"

    def __call__(self, *words: str) -> tuple[str, int, int]:
        before = self._log.read_text()
        told = self._house.call(*words)
        assert told.code == 0, told
        said = self._log.read_text().removeprefix(before)
        return told.outcome, said.count("Accepted publickey"), said.count("Starting session: ")


@pytest.fixture
def pools(tmp_path: Path) -> Iterator[ZfsStandIn]:
    """A source of three datasets, and a place for copies."""
    made = ZfsStandIn(tmp_path / "pools", "tank", "vault")
    made.create(*DATASETS, "vault/in")
    made.snapshot("first", *DATASETS)
    yield made
    made.close()


@pytest.fixture
def server(tmp_path: Path, pools: ZfsStandIn) -> Iterator[Sshd]:
    """A server whose log names each login and each request, and where zfs is the stand-in, also in a gate."""
    made = Sshd(tmp_path / "counts", more="LogLevel VERBOSE", before=in_place(pools.programs))
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize("right", ["adds", "reads"])
def test_folders_through_a_gate_take_one_login_each(house: House, server: Sshd, right: str) -> None:
    for number in range(40):
        house.write(f"many/{number}", bytes(100 + number))
    if right == "adds":
        house.target = gate(house, server)
        house.job(target=server.url(house.target), pipe=server.pipe)
    else:
        gate(house, server, right="reads", folder=house.source)
        house.job(source=server.url(house.source), pipe=server.pipe)
    asked = Counted(house, server)
    seen = {"first": asked("run", "photos"), "none": asked("run", "photos")}
    house.write("many/3", "changed")
    house.write("new", "new")
    time.sleep(1.1)  # what changed before a run is no change in its middle
    seen["some"] = asked("run", "photos")
    seen["verify"] = asked("verify", "photos", "--source")
    seen["restore"] = asked("restore", "run", "photos", "--to", str(house.folder / "back"))
    assert [outcome for outcome, _, _ in list(seen.values())[:3]] == ["done", "nothing-to-do", "done"]
    assert {what: logins for what, (_, logins, _) in seen.items()} == dict.fromkeys(seen, 1) | {
        "restore": int(right == "adds")
    }, seen
    assert seen["none"][2] <= 3, seen


@pytest.mark.parametrize("way", ["a login", "receives", "sends"])
def test_datasets_take_one_login_each(house: House, server: Sshd, pools: ZfsStandIn, way: str) -> None:
    house.environment["PATH"] = f"{pools.programs}:{os.environ['PATH']}"
    if way != "a login":
        key, keys = (server.folder / "user_key.pub").read_text(), server.folder / "authorized_keys"
        keys.unlink()
        dataset = "vault/in" if way == "receives" else "tank/mine"
        told = house.call("setup", "gate", "laptop", f"--{way}", dataset, "--key", key, "--into", str(keys))
        assert told.code == 0, told
    house.job(engine="zfs", source=server.url("/tank/mine") if way == "sends" else "tank/mine", pipe=server.pipe)
    place = "vault/in" if way == "sends" else server.url("/vault/in")
    (house.config / "targets.toml").write_text(f'[place.photos]\ndataset = "{place}"\n')
    asked = Counted(house, server)
    seen = {"first": asked("run", "photos"), "none": asked("run", "photos")}
    pools.snapshot("second", *DATASETS)
    seen |= {"some": asked("run", "photos"), "verify": asked("verify", "photos")}
    assert [outcome for outcome, _, _ in list(seen.values())[:3]] == ["done", "nothing-to-do", "done"]
    assert {what: logins for what, (_, logins, _) in seen.items()} == dict.fromkeys(seen, 1), seen
    assert seen["none"][2] <= 3, seen
    assert pools.snapshots("vault/in/mine/two")[-1] == "vault/in/mine/two@second"

"""Copies on a host are read again there; only names and digests travel."""

import os
import shutil

import pytest

from tests.whole.damage import NAMES, fill, rot
from tests.whole.house import House, facts
from tests.whole.sshd import Link, Sshd, link, sshd

pytestmark = pytest.mark.slow
__all__ = ["link", "sshd"]


@pytest.mark.parametrize("digest", ["xxh128", "sha256"])
@pytest.mark.sample(1)
def test_every_difference_is_found_and_mended(house: House, sshd: Sshd, link: Link, digest: str) -> None:
    fill(house.source)
    house.write("large", os.urandom(3_000_000))
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, verify={"digest": digest})
    assert house.run().outcome == "done"
    before = link.moved
    sound = house.call("verify", "photos")
    assert (sound.code, sound["reading"]["sound"]) == (0, True), sound
    assert sound["reading"]["entries"] == len(facts(house.source))
    assert link.moved - before < 300_000, "contents stay there"

    tree = os.fsencode(house.point())
    for name in NAMES:
        rot(tree + b"/in/" + name + b"/file")
    with open(tree + b"/plain", "wb") as file:
        file.write(b"edited")
    os.unlink(tree + b"/star*")
    os.chmod(tree + b"/[1]", 0o600)
    with open(tree + b"/new\nextra", "wb") as file:
        file.write(b"nobody promised this")
    read = house.call("verify", "photos")
    found = {each["path"]: each["verdict"] for each in read["reading"]["findings"]}
    assert read.code == 1
    assert found.pop("") == "metadata"
    assert {found.pop(name) for name in ("plain", "plain-again")} == {"edited"}
    assert (found.pop("star*"), found.pop("[1]"), found.pop("new\\nextra")) == ("missing", "metadata", "extra")
    assert len(found) == len(NAMES)
    assert set(found.values()) == {"rotten"}

    mended = house.run()
    assert mended.outcome == "done", mended
    assert facts(house.point()) == facts(house.source)
    assert house.call("verify", "photos").code == 0
    shutil.rmtree(house.state)
    assert house.call("verify", "photos").code == 0


def test_what_lies_beside_the_copies(house: House, sshd: Sshd) -> None:
    """Damage of it is named there, too, and the next run writes it anew; without our state its bytes are compared all the same."""
    house.write("one", "the first")
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    assert house.run().outcome == "done"
    for name in ("RECOVERY.md", "history.sqlite", "SHA256SUMS"):
        rot(house.target / ".poolferry" / name)
        read = house.call("verify", "photos")
        assert (read.code, f"{name} beside the copies in" in read["why"]) == (1, True), read
        assert house.run().outcome == "nothing-to-do"
        assert house.call("verify", "photos").code == 0
    shutil.rmtree(house.state)
    assert house.call("verify", "photos").code == 0
    rot(house.target / ".poolferry/RECOVERY.md")
    read = house.call("verify", "photos")
    assert (read.code, "RECOVERY.md beside the copies in" in read["why"]) == (1, True), read


def test_rot_at_a_source_on_a_host(house: House, sshd: Sshd) -> None:
    house.write("one", "the first")
    house.write("two", "the second")
    house.job(source=sshd.url(house.source), pipe=sshd.pipe)
    assert house.run().outcome == "done"
    rot(house.source / "one")
    house.write("two", "edited meanwhile")
    read = house.call("verify", "photos", "--source")
    found = {each["path"]: each["verdict"] for each in read["source"]["findings"]}
    assert (read.code, read["reading"]["sound"], found["one"], found["two"]) == (1, True, "rotten", "edited"), read
    assert house.run().outcome == "done"
    assert (house.point() / "one").read_text() == "the first"


def test_a_digest_that_the_host_cannot_make(house: House, sshd: Sshd) -> None:
    """A mistake in the job file, said before anything is copied."""
    house.write("one", "the first")
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, verify={"digest": "blake3"})
    run = house.call("run", "photos")
    [mistake] = run["mistakes"]
    assert (run.code, mistake["key"]) == (2, "verify.digest"), run
    assert "blake3" in mistake["what"]
    assert "sha256" in mistake["expected"]
    assert not house.target.exists()


def test_a_source_whose_digest_the_host_cannot_make(house: House, sshd: Sshd) -> None:
    house.write("one", "the first")
    house.job(source=sshd.url(house.source), pipe=sshd.pipe, verify={"digest": "blake3"})
    assert house.run().outcome == "done"
    assert house.call("verify", "photos").code == 0
    read = house.call("verify", "photos", "--source")
    assert (read.code, read.outcome) == (1, "failed"), read
    assert "blake3 cannot be made" in read["why"]

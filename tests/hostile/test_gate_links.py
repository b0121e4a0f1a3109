"""A gate that reads says whether links are closed to its rsync: then a copy from it links what is unchanged, and asks for the rest by name."""

import pytest

from tests.hostile.adding_gate import gate, script, speak
from tests.whole.house import House, Ran, facts, trees_equal
from tests.whole.sshd import Sshd, sshd

pytestmark = [pytest.mark.slow, pytest.mark.namespace, pytest.mark.root]
__all__ = ["sshd"]
OLDER = "import orchestrator.domain.gate as gate\nimport orchestrator.gate.read_only as read\ngate.PROTOCOLS = (1, 2, 3)\ndel read._ANSWERS['look-at-links.sh']"
OPEN = "import orchestrator.process.confine as confine\nconfine.close_links = lambda words=(): None"


def read_through(house: House, sshd: Sshd) -> None:
    """Make a first point of a source that a gate lets be read."""
    house.write("deep/other", "more")
    house.write("private/other", "what only its owner reads")
    for number in range(20):
        house.write(f"stays/{number}", str(number))
    gate(house, sshd, right="reads", folder=house.source)
    house.job(source=sshd.url(house.source), pipe=sshd.pipe, retry={"attempts": 1})
    assert (first := house.run()).outcome == "done", first


def links(ran: Ran) -> bool:
    return any("link unchanged entries" in step["action"] for step in ran["steps"])


def changed(house: House) -> Ran:
    house.write("deep/other", "changed")
    house.write("new/file", "new")
    (house.source / "stays/3").unlink()
    return house.run()


def test_a_copy_through_a_gate_links_here_what_is_unchanged(house: House, sshd: Sshd) -> None:
    read_through(house, sshd)
    before = facts(house.point())
    second = changed(house)
    assert (second.outcome, links(second)) == ("done", True), second
    assert trees_equal(house.source, house.point())
    assert facts(house.point(0)) == before
    assert (house.point() / "stays/4").samefile(house.point(0) / "stays/4")
    assert house.call("verify", "photos", "--source").code == 0


@pytest.mark.parametrize("of", [OLDER, OPEN], ids=["an older gate", "a gate whose links are open"])
@pytest.mark.sample(1)
def test_another_gate_lets_rsync_link(house: House, sshd: Sshd, of: str) -> None:
    read_through(house, sshd)
    speak(sshd, of)
    second = changed(house)
    assert (second.outcome, links(second)) == ("done", False), second
    assert trees_equal(house.source, house.point())
    assert (house.point() / "stays/4").samefile(house.point(0) / "stays/4")


def test_a_link_in_place_of_a_folder_leads_no_named_path_elsewhere(house: House, sshd: Sshd) -> None:
    """The owner of the folder above exchanges it, once the copy is told the names: the gate's rsync finds nothing by them."""
    read_through(house, sshd)
    deep, aside = house.source / "deep", house.source / "aside"
    exchange = f"os.path.islink({str(deep)!r}) or (os.rename({str(deep)!r}, {str(aside)!r}), os.symlink('private', {str(deep)!r}))"
    speak(
        sshd,
        "import os\nimport orchestrator.app.gate as gate\nread = gate._read\n"
        f"gate._read = lambda paths, command: '--files-from=-' in command.argv and ({exchange}) and None or read(paths, command)",
    )
    ended = changed(house)
    assert deep.is_symlink(), "the copy was told no names"
    found = [path for path in house.target.rglob("deep/other") if "what only" in path.read_text()]
    assert found == [], ended


@pytest.mark.parametrize("words", [("look-at-links.sh", "more"), ("look-at-links.sh", "")])
def test_the_question_takes_no_words(house: House, sshd: Sshd, words: tuple[str, ...]) -> None:
    gate(house, sshd, right="reads", folder=house.source)
    refused = script(sshd, *words)
    assert (refused.returncode, b"refused: " in refused.stderr) == (126, True), refused
    assert script(sshd, "look-at-links.sh").stdout in (b"closed\n", b"open\n")

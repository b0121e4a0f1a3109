"""Files of ours that a disk, a power cut or a person spoiled: each is told with what ends it, or is harmless; what is told is then done."""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.ferry import Ended, Ferry
from tests.whole.house import facts

Damage = Callable[[bytes, bytes | None], bytes | None]


def bit(part: float) -> Damage:
    """One bit of the byte at this part of the file."""

    def flipped(content: bytes, _: bytes | None) -> bytes:
        changed = bytearray(content)
        changed[int(part * (len(content) - 1))] ^= 8
        return bytes(changed)

    return flipped


# What becomes of a file's content; the second is what it held after the run before; None: it cannot be damaged so.
DAMAGES: dict[str, Damage] = {
    "first byte": bit(0),
    "middle": bit(0.5),
    "last byte": bit(1),
    "empty": lambda _content, _older: b"",
    "cut": lambda content, _: content[: len(content) // 2],
    "a block of zeros": lambda content, _: (
        content[: len(content) // 3] + bytes(len(content) // 3) + content[len(content) // 3 * 2 :]
    ),
    "zeros": lambda content, _: bytes(len(content)),
    "older": lambda content, older: older if older != content else None,
}
KINDS = (
    r"state/history\.sqlite", r"state/authentication\.key", r"state/notes/look-[^/]+/.*", r"state/notes/kit-[^/]+/.*",
    r"target/points/[^/]+\.manifest\.gz", r"target/\.poolferry/target\.json", r"target/\.poolferry/RECOVERY\.md",
    r"target/\.poolferry/configuration\.tar", r"target/\.poolferry/history\.sqlite", r"target/\.poolferry/SHA256SUMS",
)  # fmt: skip
TOLD = re.compile(
    r"damaged|is not as|has lost|overwritten|no key that|not an SQLite|cannot be read|cut short|not a manifest"
)
# Nobody can tell these from what they might truly be: each with the reason.
NOT_TOLD = {
    (
        "state/history.sqlite",
        "empty",
    ): "a first start that was cut leaves it so; the next run keeps the one beside the copies, and says so",
    ("state/history.sqlite", "older"): "its memory is shorter, and the points are looked at",
}


class World:
    """A job with two points, as it was before each damage."""

    def __init__(self, ferry: Ferry) -> None:
        self.ferry, self.kept = ferry, ferry.root / "kept"
        source = ferry.job(more='daily = "02:30"\n')
        self.places = {"state": ferry.state, "target": ferry.target()}
        assert ferry.run("run", "photos").code == 0
        self._keep("older")
        (source / "new").write_bytes(b"new" * 1000)
        (source / "b.bin").unlink()
        assert ferry.run("run", "photos").code == 0
        self._keep("now")
        self.points = self._points()
        self.newest = max(self.points)

    def _keep(self, name: str) -> None:
        for place, folder in self.places.items():
            shutil.copytree(folder, self.kept / name / place, symlinks=True)

    def _points(self) -> dict[str, object]:
        folder = self.places["target"] / "points"
        return {name: facts(folder / name) for name in os.listdir(folder) if (folder / name).is_dir()}

    def put_back(self) -> None:
        """Everything is as after the second run again."""
        for place, folder in self.places.items():
            shutil.rmtree(folder)
            shutil.copytree(self.kept / "now" / place, folder, symlinks=True)

    def files(self, kind: str) -> list[str]:
        """The names of all files of a kind."""
        found = {
            f"{place}/{each.relative_to(folder)}"
            for place, folder in self.places.items()
            for each in folder.rglob("*")
            if each.is_file()
        }
        return sorted(name for name in found if re.fullmatch(kind, name))

    def damage(self, name: str, damage: Damage) -> bool:
        """Spoil a file; False: that is no damage to it."""
        place, _, rest = name.partition("/")
        path, older = self.places[place] / rest, self.kept / "older" / name
        changed = damage(path.read_bytes(), older.read_bytes() if older.exists() else None)
        if changed is None or changed == path.read_bytes():
            return False
        path.write_bytes(changed)
        return True

    def story(self) -> list[Ended]:
        """Do what a person does next; what comes back is the newest point's, and no point changes or goes."""
        back, none = self.ferry.root / "back", str(self.ferry.root / "none")
        elsewhere = ("--config", none, "--state", none)
        told = [self.ferry.run("status"), self.ferry.run("check"), self.ferry.run("points", "photos")]
        told.append(self.ferry.run(*elsewhere, "restore", "bootstrap", "--plan", str(self.places["target"])))
        told.append(self.ferry.run("restore", "run", "photos", "--to", str(back)))
        assert told[-1].code or facts(back) == self.points[self.newest], told[-1]
        shutil.rmtree(back, ignore_errors=True)
        for words in (("verify", "photos"), ("run", "photos"), ("verify", "photos"), ("status",)):
            told.append(self.ferry.run(*words))
            assert self.points.items() <= self._points().items(), (words, told[-1])
        said = "".join(each.out + each.err for each in told)
        assert not re.search("Traceback|mistake in poolferry|internal error", said), said
        assert {each.code for each in told} <= {0, 1, 3, 4}, said
        return told


@pytest.mark.root
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_file_with_each_damage_is_told_or_harmless(ferry: Ferry, kind: str, damage: str) -> None:
    world = World(ferry)
    sound = [each.code for each in world.story()]
    for name in world.files(kind):
        world.put_back()
        if (name, damage) in NOT_TOLD or not world.damage(name, DAMAGES[damage]):
            continue
        told = world.story()
        said = "".join(each.out + each.err for each in told)
        assert [each.code for each in told] == sound or TOLD.search(said), (name, said)


@pytest.mark.root
@pytest.mark.parametrize("damage", ["first byte", "empty", "a block of zeros", "cut", "zeros"])
@pytest.mark.sample(2)
def test_a_damaged_marker_is_told_and_its_hint_ends_it(ferry: Ferry, damage: str) -> None:
    """Before, the copies belonged to a job "(unreadable …)", and what was told helped nobody; an empty one was never written again."""
    world = World(ferry)
    assert world.damage("target/.poolferry/target.json", DAMAGES[damage])
    refused = ferry.run("run", "photos")
    assert (refused.code, ".poolferry/target.json" in refused.err + refused.out) == (3, True), refused
    follow(ferry, refused)
    assert ferry.run("verify", "photos").code == 0
    assert "nothing changed" in ferry.run("run", "photos").out
    assert ferry.run("status").code == 0


@pytest.mark.root
@pytest.mark.parametrize("damage", ["middle", "empty", "cut"])
@pytest.mark.sample(1)
def test_a_damaged_key_fails_each_run_until_its_hint_is_followed(ferry: Ferry, damage: str) -> None:
    """Before, a run with nothing to do ended well each night, and said that all was up, though nothing could be verified any more."""
    world = World(ferry)
    assert world.damage("state/authentication.key", DAMAGES[damage])
    failed = ferry.run("run", "photos")
    assert (failed.code, "authentication.key" in failed.err + failed.out) == (1, True), failed
    status = ferry.run("status")
    assert (status.code, "authentication.key" in status.out) == (4, True), status
    follow(ferry, failed)
    assert ferry.run("run", "photos").code == 0
    assert ferry.run("status").code == 0


@pytest.mark.root
@pytest.mark.parametrize("what", ["a link", "a folder"])
def test_what_lies_in_place_of_a_key_goes_by_its_hint(ferry: Ferry, what: str) -> None:
    World(ferry)
    path, elsewhere = ferry.state / "authentication.key", ferry.root / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere) if what == "a link" else path.mkdir()
    failed = ferry.run("run", "photos")
    assert (failed.code, "authentication.key" in failed.err + failed.out) == (1, True), failed
    follow(ferry, failed)
    assert elsewhere.exists()
    (ferry.root / "photos-source/more").write_text("more")
    assert ferry.run("run", "photos").code == 0
    assert path.is_file()
    assert not path.is_symlink()


@pytest.mark.root
@pytest.mark.parametrize("lost", ["gone", "empty"])
@pytest.mark.sample(1)
def test_the_past_of_a_lost_history_is_kept_beside_the_copies(ferry: Ferry, lost: str) -> None:
    """Before, the first run that carried anything put the new history, which knows nothing, in the place of the last copy of the old one."""
    world = World(ferry)
    path = ferry.state / "history.sqlite"
    path.unlink() if lost == "gone" else path.write_bytes(b"")
    (ferry.root / "photos-source/more").write_text("more")
    ran = ferry.run("run", "photos")
    assert ran.code == 0, ran
    assert "history begins with this run" in ran.err + ran.out, ran
    runs = len(ferry.run("history", "photos", "--json").value["runs"])
    follow(ferry, ran)
    assert len(ferry.run("history", "photos", "--json").value["runs"]) > runs
    assert ferry.run("run", "photos").code == 0
    assert ferry.run("verify", "photos").code == 0
    assert ferry.run("status").code == 0
    assert "history begins" not in ferry.run("run", "photos").err
    assert world.points.items() <= world._points().items()


@pytest.mark.root
def test_a_folder_in_place_of_latest_is_named_with_what_helps(ferry: Ferry) -> None:
    """As `cp -rL` of a target leaves one. Before, it was a failure that nobody knows, and the hint was to look at the output."""
    World(ferry)
    (ferry.target() / "latest").unlink()
    (ferry.target() / "latest").mkdir()
    (ferry.root / "photos-source/more").write_text("more")
    ran = ferry.run("run", "photos")
    assert (ran.code, "a folder lies in the target where `latest`" in ran.err + ran.out) == (1, True), ran
    (command,) = set(re.findall("`(mv [^`]*)`", ran.err + ran.out))
    subprocess.run(command.split(), cwd=ferry.target(), check=True)
    assert ferry.run("run", "photos").code == 0
    assert (ferry.target() / "latest/more").exists()


@pytest.mark.root
@pytest.mark.parametrize("first", ["nothing to do", "failed"])
def test_the_past_is_kept_whatever_the_first_run_finds(ferry: Ferry, first: str) -> None:
    """Before, one that found nothing to do, or failed, carried nothing, and the next one took the older history for its own."""
    World(ferry)
    (ferry.state / "history.sqlite").unlink()
    source = ferry.root / "photos-source"
    if first == "failed":
        source.rename(ferry.root / "away")
        assert ferry.run("run", "photos").code != 0
        (ferry.root / "away").rename(source)
    ran = ferry.run("run", "photos")
    assert (ran.code, "another one lay beside the copies: it is kept" in ran.err + ran.out) == (0, True), ran
    (source / "more").write_text("more")
    assert "lay beside" not in ferry.run("run", "photos").err
    (kept,) = (ferry.target() / ".poolferry").glob("history-before-*")
    with closing(sqlite3.connect(kept)) as known:
        assert known.execute("SELECT count(*) FROM points").fetchone()[0] > 0


@pytest.mark.root
def test_a_job_that_is_read_more_often_than_it_runs_has_one_history(ferry: Ferry) -> None:
    """Before, after some twenty verifications the next run took its own history for a new one, and kept another copy each time."""
    World(ferry)
    for _ in range(20):
        assert ferry.run("verify", "photos").code == 0
    (ferry.root / "photos-source/more").write_text("more")
    ran = ferry.run("run", "photos")
    assert (ran.code, "history" in ran.err + ran.out) == (0, False), ran
    assert not list((ferry.target() / ".poolferry").glob("history-before-*"))


@pytest.mark.root
def test_an_earlier_history_of_one_job_takes_no_place_of_one_that_knows_others(ferry: Ferry) -> None:
    """Before, the hint was to copy it over the history of all jobs."""
    World(ferry)
    (ferry.state / "history.sqlite").unlink()
    ferry.job("mail")
    assert ferry.run("run", "mail").code == 0
    (ferry.root / "photos-source/more").write_text("more")
    ran = ferry.run("run", "photos")
    assert (
        ran.code,
        "knows no earlier run of photos that ended well here" in ran.err + ran.out,
        "cp --" in ran.err + ran.out,
    ) == (
        0,
        True,
        False,
    ), ran
    (kept,) = (ferry.target() / ".poolferry").glob("history-before-*")
    listed = ferry.run("points", "photos", "--look").out
    assert f"`rm -- {kept}`" in listed, listed
    kept.unlink()
    assert "rm --" not in ferry.run("points", "photos", "--look").out


def follow(ferry: Ferry, told: Ended) -> None:
    """Do what was told, to the letter: the commands in it, in their order."""
    said = told.err + told.out
    commands = re.findall(r"(?:rm (?:-r )?-- [^ \n]+|cp -- [^ \n]+ [^ \n]+|poolferry run photos --allow [a-z-]+)", said)
    assert commands, said
    for command in dict.fromkeys(commands):
        if command.startswith("poolferry "):
            ended = ferry.run(*command.split()[1:])
            assert ended.code == 0, ended
        else:
            subprocess.run(["sh", "-c", command], check=True)

"""Each request that changes something in a gate's folder, ended by kill -9 in its middle, there or here: no point suffers, and the next run goes on."""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.engines.rsync.model import LINK_UNCHANGED, PARTIAL
from orchestrator.gate.add_points import _WRITES
from orchestrator.process.scripts import script as script_text
from tests.hostile.adding_gate import first_point, gate, left_process, script, speak
from tests.processes import family, state
from tests.whole.house import House, facts, kill, trees_equal, wait_until
from tests.whole.sshd import Sshd, sshd

pytestmark = [pytest.mark.slow, pytest.mark.namespace]
__all__ = ["sshd"]

# The request that a file names stops itself, once: before this line of its script, or once a file is linked.
_STOPS = """import os
from dataclasses import replace
import orchestrator.app.gate_folder as gate
import orchestrator.trees.linked_tree as tree
carry_out, link = gate._carry_out, tree._link
def stops(root, same, asked):
    name = "{links}" if asked.links else asked.command.argv[3]
    if name != "{name}" or not os.path.exists({flag!r}):
        return carry_out(root, same, asked)
    os.unlink({flag!r})
    if asked.links:
        def shares(name, *words, **more):
            linked = link(name, *words, **more)
            if name in ("file", b"file"):
                tree._link = link
                os.kill(os.getpid(), 19)
            return linked
        tree._link = shares
        return carry_out(root, same, asked)
    words, text = asked.command.argv, {text!r}
    before, found, _ = words[2].rpartition(text)
    assert found, "the gate answers by another script"
    lines = text.split("\\n")
    lines.insert({line}, "kill -STOP $$")
    changed = (*words[:2], before + "\\n".join(lines), *words[3:])
    return carry_out(root, same, replace(asked, command=replace(asked.command, argv=changed)))
gate._carry_out = stops
"""
# Read here: each test has an environment of its own.
EVERYWHERE = "POOLFERRY_KILLS" in os.environ
_NO_BEGIN = ("fi", "done", "esac", "else", "}", ")", "EOF", "$(", "#", "set ", " ", "'")
TEMPORARY = ".large.AbCdEf"


def _half(work: Path) -> None:
    """A work tree as cut copies leave it."""
    (work / "deep").mkdir()
    (work / "deep" / PARTIAL).mkdir()
    (work / "deep" / PARTIAL / "large").write_bytes(b"x" * 300_000)
    (work / "deep" / TEMPORARY).write_bytes(b"x" * 200_000)
    (work / "gone").mkdir()
    (work / "gone/file").write_text("of a folder that the job names no more")


def _linked(work: Path) -> None:
    """A work tree that shares files with a point."""
    (point,) = (each for each in (work.parents[1] / "points").iterdir() if each.is_dir())
    (work / "deep").mkdir()
    for name in ("file", "deep/other"):
        os.link(point / name, work / name)
    (work.parent / "linked").touch()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A request as it comes about: a run makes it (no `words`), or its words in a work tree that `prepares` makes. `first`: at a new folder."""

    words: str = ""
    stdin: bytes = b""
    prepares: Callable[[Path], None] = _half
    first: bool = False


SCENES = {
    "try-abilities.sh": Scene(first=True),
    "prepare.sh": Scene(),
    "open-top.sh": Scene(words="{work}"),
    "unshare-tree.sh": Scene(words="{work}", prepares=_linked),
    "take-up.sh": Scene(words=f"{{work}} deep large {TEMPORARY} 100000"),
    "finish.sh": Scene(words="{work} deep large 300000 holes"),
    "discard.sh": Scene(words=f"{{work}} deep/{PARTIAL} large deep {TEMPORARY}"),
    "sweep.sh": Scene(words="{work} ''"),
    "discard-others.sh": Scene(words="{work} deep"),
    "dig-holes.sh": Scene(words="{root}/points/{point} {work}", stdin=b"./deep/large\0"),
    LINK_UNCHANGED: Scene(),
    "store.sh": Scene(),
    "discard-note.sh": Scene(words="{root}/.poolferry/manifest.gz"),
    "publish.sh": Scene(),
    "name-latest.sh": Scene(words="{root} {point}"),
}


def test_each_request_that_changes_something_is_killed_here() -> None:
    assert set(SCENES) == set(_WRITES), "a request that writes needs a scene, so that it is killed, too"


# What they change lies where another request of those that `make test` kills changes something, too.
LIKE_OTHERS = {"open-top.sh", "discard-note.sh", "discard-others.sh", "dig-holes.sh", "name-latest.sh", "store.sh"}


def lines_of(name: str) -> list[int]:
    """Return where its script can be stopped: before each command of its own, not within one."""
    if name == LINK_UNCHANGED:
        return [0]
    lines = script_text("engines/rsync", name).split("\n")
    begins = [at for at, line in enumerate(lines) if line and not line.startswith(_NO_BEGIN)]
    return [at for at in begins if at > lines.index("set -e") + 1]


def chosen(name: str) -> list[int]:
    """Return one of its middle."""
    found = lines_of(name)
    return [found[(len(found) + 1) // 2]] if len(found) > 2 else found[-1:]


def stopped(sshd: Sshd) -> list[int]:
    """The processes of the gate that stopped themselves."""
    below = [pid for root in (sshd.pid, left_process(sshd)) if root for pid, _ in family(root)]
    return [pid for pid in below if state(pid) == "T"]


def strike(sshd: Sshd, victim: str, asked: "subprocess.Popen[str]") -> None:
    """Kill all that answers there, or all that asks here; then what stopped goes on, though nobody waits for it."""
    (halted,) = wait_until(lambda: stopped(sshd))
    there, here = [pid for root in (sshd.pid, left_process(sshd)) for pid, _ in family(root)], family(asked.pid)
    if victim == "gate":
        for pid in (halted, left_process(sshd), *there):
            kill(pid)
        return
    for pid in (asked.pid, *(pid for pid, _ in here)):
        kill(pid)
    asked.wait(30)
    kill(halted, signal.SIGCONT)


def begun(house: House, sshd: Sshd, name: str, scene: Scene, number: int) -> "subprocess.Popen[str]":
    """Let the request be made; by a run that has something to copy, or alone."""
    root, work = house.target, house.target / ".poolferry/work"
    if scene.first:
        shutil.rmtree(root)
        root.mkdir(mode=0o700)
    house.write("new", f"file {number}")
    if not scene.words:
        return house.start()
    assert script(sshd, "prepare.sh", str(root), "photos", "9", "work").returncode == 0
    scene.prepares(work)
    house.write(root / ".poolferry/manifest.gz", "")
    words = shlex.split(scene.words.format(root=root, work=work, point=house.points()[0]))
    line = shlex.join(("sh", "-c", "x", name, *words))
    argv = ["ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port), f"{sshd.user}@127.0.0.1", line]
    with subprocess.Popen(["printf", "%b", scene.stdin.replace(b"\0", b"\\0")], stdout=subprocess.PIPE) as gives:
        return subprocess.Popen(
            argv, stdin=gives.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
        )


@pytest.mark.parametrize("victim", ["gate", pytest.param("sender", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LIKE_OTHERS)) for name in SCENES]
)
@pytest.mark.sample(4)
def test_a_request_that_is_killed_in_its_middle_costs_no_point(
    house: House, sshd: Sshd, name: str, victim: str
) -> None:
    """In its middle; before each command of its script, where POOLFERRY_KILLS is set."""
    scene, flag, line = SCENES[name], house.folder / "stops", ""
    if scene.first:
        house.write("file", "content")
        house.target = gate(house, sshd)
        house.job(target=sshd.url(house.target), pipe=sshd.pipe, retry={"attempts": 1})
    else:
        house.write("deep/large", bytes(300_000))
        first_point(house, sshd)
        house.job(target=sshd.url(house.target), pipe=sshd.pipe, retry={"attempts": 1})
    text = "" if name == LINK_UNCHANGED else script_text("engines/rsync", name)
    for number, line_number in enumerate(lines_of(name) if EVERYWHERE else chosen(name)):
        before = {point: facts(house.target / "points" / point) for point in house.points()}
        speak(sshd, _STOPS.format(name=name, links=LINK_UNCHANGED, flag=str(flag), text=text, line=line_number))
        flag.touch()
        asked = begun(house, sshd, name, scene, number)
        strike(sshd, victim, asked)
        asked.communicate(timeout=60)
        line = text.split("\n")[line_number]
        wait_until(lambda: not stopped(sshd))
        (house.source / "file").chmod(
            0o600 + number % 8
        )  # where a work tree shares it with a point, and nobody knows, both would change
        ended = house.run()
        assert ended.outcome in ("done", "nothing-to-do"), (line, ended)
        assert trees_equal(house.source, house.point()), line
        now = {} if scene.first else before
        assert all(facts(house.target / "points" / point) == seen for point, seen in now.items()), line
        assert (house.target / "latest").resolve() == house.point(), line
        assert house.call("verify", "photos", "--source").code == 0, line

"""Other processes are looked at by one door, which knows that each may be gone: a test that forgot it was red by chance."""

import ast
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import processes
from tests.syntax import walked

HERE = Path(__file__).parent
LOOKS = ("open", "Path", "os.listdir", "os.scandir", "os.readlink", "os.path.exists")
GONE = 2**22 + 1  # no process can have this number


def looks_by_itself(text: str) -> list[str]:
    """The places of a module that open, list or look for something of /proc by a process's number."""
    found = []
    for node in walked(text):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in LOOKS:
            first = node.args[0]
            start = first.values[0] if isinstance(first, ast.JoinedStr) else first
            words = start.value if isinstance(start, ast.Constant) else None
            if words == "/proc" or (words == "/proc/" and start is not first):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def test_it_is_the_only_door() -> None:
    files = [file for file in sorted(HERE.rglob("*.py")) if file.name != "processes.py"]
    assert {str(file.relative_to(HERE)): found for file in files if (found := looks_by_itself(file.read_text()))} == {}


@pytest.mark.parametrize(
    "call",
    [
        'open(f"/proc/{pid}/stat")',
        'Path(f"/proc/{pid}/fd").iterdir()',
        'os.listdir("/proc")',
        'os.path.exists(f"/proc/{pid}")',
    ],
)
def test_another_one_is_seen(call: str) -> None:
    assert looks_by_itself(f"x = {call}\n")


def test_one_that_is_gone_says_nothing() -> None:
    one = processes
    assert (one.told(GONE, "status"), one.argv_of(GONE), one.state(GONE), one.links(GONE)) == (b"", [], "X", [])
    assert (one.lives(GONE), one.is_there(GONE), one.children(GONE), one.family(GONE)) == (False, False, [], [])
    assert (one.program(GONE), one.threads(GONE), one.folder_of(GONE)) == ("", 0, None)


def test_one_is_told_as_it_is_until_it_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["sh", "-c", "sleep 600; : a\n(b) c"], cwd=tmp_path, start_new_session=True) as child:
        while len(processes.members(child.pid)) < 2 or "sleep" not in dict(processes.family(child.pid)).values():
            assert child.poll() is None
        ((below, name),) = processes.family(child.pid)
        assert (name, processes.argv_of(below)) == ("sleep", ["sleep", "600"])
        assert (processes.children(child.pid), processes.members(child.pid)) == ([below], [child.pid, below])
        assert processes.argv_of(child.pid)[2:] == ["sleep 600; : a\n(b) c"]
        assert (processes.folder_of(child.pid), processes.threads(child.pid)) == (tmp_path, 1)
        assert (child.pid, "sh") in processes.family(os.getpid())
        assert processes.links(child.pid)[0] == os.readlink("/proc/self/fd/0")
        os.killpg(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert (processes.state(child.pid), processes.lives(child.pid), processes.is_there(child.pid)) == (
            "Z",
            False,
            True,
        )
    assert not processes.is_there(child.pid)

"""A command that is killed before each change that it makes on the disk, and then said again: `python -m tests.whole.cut_writes`.

Reads {"folder", "command"} as JSON; the command runs in a copy of the folder, which is its working directory. Prints for each kill the
exit code of the second try and how the folder differs from one in which nobody killed it.
"""

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

from orchestrator.cli import main

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# What a kill may leave of a file that has no name yet; and what no two runs write alike.
LEFT = re.compile(r"(^|/)\.[^/]*\.new$|history\.sqlite|\.log$|/cache/")
MOST = 300


def call(command: list[str], at: int) -> int:
    """The exit code of the command, which is killed before this change; 0: before none."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        said = os.open("../said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(said, 1)
        os.dup2(said, 2)
        left = [at]

        def note(event: str, given: tuple[object, ...]) -> None:
            opened = event == "open" and isinstance(given[2], int) and given[2] & WRITES
            if event in CHANGES or (opened and not str(given[0]).startswith(("/proc/", "/dev/"))):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        if at:
            sys.addaudithook(note)
        code = 99
        try:
            code = main(command)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    ended = os.waitpid(pid, 0)[1]
    return -signal.SIGKILL if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)


def state() -> dict[str, str]:
    """Each entry below the working directory with its mode and content."""
    found = {}
    for path in sorted(Path().rglob("*")):
        if not LEFT.search(str(path)):
            found[str(path)] = f"{path.lstat().st_mode:o} {path.read_bytes() if path.is_file() else b''!r}"
    return found


def cuts(folder: Path, command: list[str]) -> list[tuple[int, int, list[str], str]]:
    """For each kill: its number, the exit code of the second try, what differs then, and what was said."""
    work = folder.with_name("work")

    def fresh() -> None:
        os.chdir(folder)
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(folder, work, symlinks=True)
        os.chdir(work)

    fresh()
    assert call(command, 0) == 0, Path("../said").read_text()
    whole = state()
    found: list[tuple[int, int, list[str], str]] = []
    for at in range(1, MOST):
        fresh()
        if call(command, at) != -signal.SIGKILL:
            return found
        code, now = call(command, 0), state()
        differing = sorted(name for name in {*whole, *now} if whole.get(name) != now.get(name))
        found.append((at, code, differing, Path("../said").read_text()))
    raise AssertionError("it never ends")


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(cuts(Path(asked["folder"]), asked["command"])))

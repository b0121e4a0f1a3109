"""Stands ready in a machine's saved state: an interpreter that has imported what every start of poolferry needs.

Why: under emulation, imports are most of a start. Each command is a process of its own, forked from here: its words, folder,
user, session and streams are its own, and so is what it ends with. What commands before it have imported of the working tree
is imported here once. `Machine.poolferry` asks this way (see virtual.py); a unit of systemd, `popen` and `sh` start the
program itself, as does everything after a boot, or with POOLFERRY_LAB_COLD=1.

It runs in the machine, alone, from the standard library.
"""

import contextlib
import gc
import importlib
import os
import pwd
import select
import signal
import socket
import sys

PORT = 907
TREE = "/mnt/poolferry"
PROGRAM = "orchestrator.__main__"
# Who asks, in the machine: the user's name, then the words. Where nobody answers, it is the program itself.
ASKING = f"""#!/bin/bash
user=$1; shift
{{ exec 3<>/dev/tcp/127.0.0.1/{PORT}; }} 2>/dev/null || exec poolferry "$@"
printf '%s\\0' $$ "$user" $# "$@" >&3
read -r -u 3 code || exit 125
[ "$code" -ge 0 ] && exit "$code"
kill "$code" $$
"""
# Not of the working tree, which is not there yet when the state is saved. What is missing in one Python is no harm.
BEFORE = (
    "argparse ast base64 bisect blake3 calendar click collections.abc concurrent.futures contextlib copy csv dataclasses datetime "
    "difflib email.utils enum fcntl fnmatch functools getpass glob hashlib heapq html importlib.metadata importlib.resources inspect "
    "io itertools json locale logging os.path pathlib platform posixpath pwd random re secrets select selectors shlex shutil signal "
    "socket sqlite3 stat string struct subprocess tarfile tempfile textwrap threading time tomllib traceback types typing unicodedata "
    "urllib.parse uuid weakref xxhash zlib zoneinfo _strptime"
).split()


def serve() -> None:
    """Goes round for ever."""
    for name in BEFORE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    line.bind(("127.0.0.1", PORT))
    line.listen(8)
    gc.freeze()
    known: list[str] = [PROGRAM, "orchestrator.cli", "orchestrator.compose"]
    under_way: dict[int, tuple[socket.socket, int]] = {}  # by the number of what tells of a child's end
    poll = select.poll()
    poll.register(line, select.POLLIN)
    while True:
        for number, _ in poll.poll():
            if number == line.fileno():
                requested, _ = line.accept()
                if not (words := heard(requested)):
                    continue
                take(known)
                pid, told = begin(words)
                under_way[told] = (requested, pid)
                poll.register(told, select.POLLIN)
                poll.register(requested, select.POLLRDHUP)
            else:
                end(number, under_way, poll, known)


def take(known: list[str]) -> None:
    """Imports what commands before this one have imported."""
    if TREE not in sys.path:
        sys.path.insert(0, TREE)
        importlib.invalidate_caches()
    while known:
        with contextlib.suppress(ImportError):
            importlib.import_module(known.pop(0))


def heard(requested: socket.socket) -> list[str]:
    """Return who asks, for which user, and the words of the command; nothing of one who is gone before it has told all."""
    got, words, least = b"", [""], 3
    while len(words) - 1 < least:
        if not (more := requested.recv(65536)):
            requested.close()
            return []
        got += more
        words = got.decode(errors="surrogateescape").split("\0")
        least = 3 + int(words[2]) if len(words) > 3 else 3
    client, user, _, *argv = words[:-1]
    return [client, user, *argv]


def begin(words: list[str]) -> tuple[int, int]:
    """The process of a command, and where it tells at its end what it has imported."""
    client, user, *argv = words
    mine, theirs = os.pipe()
    if pid := os.fork():
        os.close(theirs)
        return pid, mine
    try:
        os.close(mine)
        become(client, user, keep=theirs)
        run(argv, theirs)
    except BaseException:  # noqa: BLE001 - as the interpreter does where nobody caught it
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def become(client: str, user: str, *, keep: int) -> None:
    """Has a session, streams and a user of its own, as the client has them."""
    os.setsid()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        opened = os.open(f"/proc/{client}/fd/{number}", os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
        old = getattr(sys, name)
        how = {"encoding": old.encoding, "errors": old.errors, "closefd": False, "buffering": 1 if number == 2 else -1}
        new = open(number, "w" if number else "r", **how)  # noqa: SIM115 - for as long as it lives
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    os.closerange(3, keep)
    os.closerange(keep + 1, keep + 64)
    os.set_inheritable(keep, False)
    whom = pwd.getpwnam(user or "root")
    if whom.pw_uid:
        os.setgroups(())
        os.setgid(whom.pw_gid)
        os.setuid(whom.pw_uid)
    os.environ.update(HOME=whom.pw_dir, PYTHONPATH=TREE)
    os.chdir(whom.pw_dir)


def run(argv: list[str], told: int) -> None:
    """The program, which leaves by os._exit."""
    leave, before = os._exit, set(sys.modules)

    def notify(code: int) -> None:
        new = [name for name in sys.modules if name not in before and name != "__main__"]
        with contextlib.suppress(OSError):
            os.write(told, "\n".join(new).encode())
        leave(code)

    os._exit = notify  # type: ignore[assignment]
    sys.argv = [f"{TREE}/orchestrator/__main__.py", *argv]
    try:
        sys.modules[PROGRAM].program()
    except SystemExit as ended:
        notify(ended.code if isinstance(ended.code, int) else int(ended.code is not None))


def end(number: int, under_way: dict[int, tuple[socket.socket, int]], poll: select.poll, known: list[str]) -> None:
    """A command has ended, or nobody waits for it any more."""
    for told, (requested, pid) in list(under_way.items()):
        if number == requested.fileno():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            poll.unregister(requested)
        elif number == told:
            new = b""
            while more := os.read(told, 65536):
                new += more
            _, status = os.waitpid(pid, 0)
            with contextlib.suppress(OSError, KeyError):
                poll.unregister(requested)
            with contextlib.suppress(OSError):
                requested.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            poll.unregister(told)
            requested.close()
            os.close(told)
            del under_way[told]
            known.extend(name for name in new.decode().split("\n") if name)


if __name__ == "__main__":
    serve()

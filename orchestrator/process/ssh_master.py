"""One ssh connection that all commands of a run share, because a login costs more than most commands."""

import contextlib
import fcntl
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Collection, Iterator

from orchestrator.domain.command_line import sharing_options, ssh_argv
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect

_PATIENCE = 5.0
# As long as "poolferry-", which leaves a socket's path its 107 bytes.
_PREFIX = "ferry-ssh-"
# Seconds after which a folder that nobody holds was left by a run that was killed, and is not one that is just being made.
_LEFT = 3600.0


@contextlib.contextmanager
def shared_connections(hosts: Collection[Host], options: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield ssh options with which commands share one connection to each host; the connection ends with the block.

    Why a folder of our own: a socket's path may
    hold 107 bytes, and only we may use it. It is locked: a folder of ten days that nobody holds is swept by systemd-tmpfiles
    (tmpfiles.d(5)), and by us after an hour, and without it ssh ends with an error.
    """
    if not hosts:
        yield options
        return
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=_short())
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_SH)
    _sweep(os.path.dirname(folder), os.fstat(held).st_mtime - _LEFT)
    shared = sharing_options(options, folder)
    try:
        yield shared
    finally:
        for host in hosts if os.listdir(folder) else ():
            _end(host, shared)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _sweep(usual: str, before: float) -> None:
    """Remove the folders that runs which were killed left in `usual`: ours alone, older than `before`, held by nobody."""
    for name in os.listdir(usual):
        if name.startswith(_PREFIX):
            with contextlib.suppress(OSError):
                _sweep_one(f"{usual}/{name}", before)


def _sweep_one(folder: str, before: float) -> None:
    """Remove one folder, with the sockets of connections that were killed, too. Raises OSError where it is held, or holds anything else."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        facts = os.fstat(held)
        if facts.st_uid == os.geteuid() and facts.st_mtime < before:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in os.listdir(held):
                if stat.S_ISSOCK(os.lstat(name, dir_fd=held).st_mode):
                    os.unlink(name, dir_fd=held)
            os.rmdir(folder)
    finally:
        os.close(held)


def _short() -> str:
    """Return a folder with a short path for sockets, which ssh reads as it is: it splits words, and replaces what follows a %.

    Source: unix(7), sun_path; ssh adds 58 bytes of its own.
    """
    usual = tempfile.gettempdir()
    return usual if re.fullmatch(r"[\w./-]{1,30}", usual, re.ASCII) else "/tmp"  # noqa: S108 - the folder inside is ours alone


def _end(host: Host, options: tuple[str, ...]) -> None:
    """Ask the connection to end; one that does not answer ends by itself, with its link or soon after."""
    command = Command(argv=("true",), effect=Effect.READS, host=host)
    argv = ssh_argv(command, ("-Oexit", *options))
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )

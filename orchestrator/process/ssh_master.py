"""One ssh connection that all commands of a run share, because a login costs more than most commands."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect

# Seconds that a connection stays open after its last command when poolferry was killed. Why few: if this machine then loses
# power, the other side notices nothing and keeps the session for hours. A longer pause within a run costs one more login.
_PERSIST = 15
_PATIENCE = 5.0


@contextlib.contextmanager
def shared_connections(hosts: Collection[Host], options: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield ssh options with which commands share one connection to each host; the connection ends with the block.

    `options` come first, so that a ControlPath of the owner's own wins. Why a folder of our own: a socket's path may
    hold 107 bytes, and only we may use it.
    """
    if not hosts:
        yield options
        return
    folder = tempfile.mkdtemp(prefix="poolferry-", dir=_short())
    shared = (
        *options,
        "-oControlMaster=auto",
        f"-oControlPath={folder}/%C",
        f"-oControlPersist={_PERSIST}",
    )
    try:
        yield shared
    finally:
        for host in hosts if os.listdir(folder) else ():
            _end(host, shared)
        shutil.rmtree(folder, ignore_errors=True)


def _short() -> str:
    """Return a folder with a short path for sockets. Source: unix(7), sun_path; ssh adds 58 bytes of its own."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) <= 30 else "/tmp"  # noqa: S108 - the folder inside is ours alone


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

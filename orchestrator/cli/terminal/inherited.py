"""The descriptors, signals, umask and environment that the program inherits from who starts it, made safe before anything else.

Why: root may be started by `su` or `sudo -E` with the variables of a user, and those decide which programs run: PATH by itself, HOME
by files such as .popt, in which rsync finds options of its own.
"""

import functools
import os
import signal
import stat
import sys

_TEMPORARY = ("TMPDIR", "TEMP", "TMP")


def make_safe() -> None:
    """Open what is closed of the standard streams, hear signals, let nobody write what we make, and drop what leads to files of others."""
    _open_streams()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would hide how programs end
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # blocked, no signal would stop a run
    os.umask(os.umask(0o077) | 0o022)
    folders = [each for each in os.environ.get("PATH", "").split(":") if each.startswith("/")]
    if os.geteuid() == 0:
        folders = [each for each in folders if _is_roots(each)]
        for name in _TEMPORARY:
            if name in os.environ and not _is_roots(os.environ[name]):
                del os.environ[name]
        if "HOME" in os.environ and not _is_roots(os.environ["HOME"]):
            del os.environ["HOME"]  # then the account's own is taken
    if sys.flags.isolated:
        os.environ.pop("PYTHONPATH", None)  # it did not count here, and shall not for the runs that are begun
    if "PATH" in os.environ:
        os.environ["PATH"] = ":".join(folders) or os.defpath


def _open_streams() -> None:
    """Open /dev/null in place of closed standard streams: else the next file that is opened, such as the history, becomes one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", newline="\n", closefd=False)  # noqa: SIM115 - for as long as we live
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _is_roots(path: str) -> bool:
    """Return True when only root can exchange what the path leads to; a folder that all may write counts when it is sticky.

    A group's right to write does not count: /usr/local/bin is a group's on many a Debian.
    """
    try:
        return path.startswith("/") and all(
            _is_held(each) for way in (path, os.path.realpath(path)) for each in _ways(way)
        )
    except OSError:
        return False


def _ways(path: str) -> list[str]:
    parts = os.path.normpath(path).split("/")
    return ["/".join(parts[:end]) or "/" for end in range(1, len(parts) + 1)]


@functools.cache
def _is_held(path: str) -> bool:
    about = os.lstat(path)
    open_to_all = about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX and not stat.S_ISLNK(about.st_mode)
    return about.st_uid == 0 and not open_to_all

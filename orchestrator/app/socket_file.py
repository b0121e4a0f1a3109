"""A socket in a file, of the daemon, its numbers and the status page. Its name appears when somebody listens behind it, and not before.

Why: between bind(2) and listen(2) the file is there and every caller is refused, as if nobody were at home.
"""

import contextlib
import errno
import os
import socket
import stat


def listen_in_file(path: str, *, mode: int, group: int | None, backlog: int) -> socket.socket:
    """Return a listening stream socket of this path, for its owner and, where `mode` says so, a group.

    Raises: OSError where somebody listens there already, or something else lies there.
    """
    new = path[:-1] + ("+" if path.endswith("~") else "~")  # no longer than the path: what fits unix(7) fits
    for each in (path, new):
        _refuse_what_lies_at(each)
    with contextlib.suppress(FileNotFoundError):  # of a process that was killed just then
        os.unlink(new)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o777 & ~mode)  # not chmod: the name may be another's by then
        try:
            listening.bind(new)
        finally:
            os.umask(before)
        if group is not None:
            os.chown(new, -1, group, follow_symlinks=False)
        listening.listen(backlog)
        os.rename(new, path)
    except BaseException:
        listening.close()
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    return listening


def _refuse_what_lies_at(path: str) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(errno.EEXIST, "something lies there that is no socket", path)
    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError), socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)  # of one that answers nobody the queue of callers may be full
        with contextlib.suppress(BlockingIOError):
            probe.connect(path)
        raise OSError(errno.EADDRINUSE, "somebody listens there already", path)

"""Run a program where a filesystem that never answers is mounted on a folder: OWNER FOLDER PROGRAM ARGUMENT ...

OWNER: 0, and it never answers anybody, as a server that has gone; or another user, of whose own program root is told nothing at all.

In a mount namespace of its own: with the program's end, however it ends, nothing waits any more.
"""

import ctypes
import os
import sys

_NEW_NAMESPACE, _PRIVATE = 0x20000, 0x4000 | 0x40000


def main(owner: int, folder: str, program: list[str]) -> None:
    """Mount it and become the program."""
    libc = ctypes.CDLL(None, use_errno=True)
    requests = os.open("/dev/fuse", os.O_RDWR)  # nobody reads them
    os.set_inheritable(requests, True)
    how = f"fd={requests},rootmode=40755,user_id={owner},group_id=0{'' if owner else ',allow_other'}"
    done = (
        libc.unshare(_NEW_NAMESPACE),
        libc.mount(b"none", b"/", None, _PRIVATE, None),
        libc.mount(b"dead", os.fsencode(folder), b"fuse", 0, how.encode()),
    )
    if any(done):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
    os.execvp(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])

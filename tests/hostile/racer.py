"""A program that a stranger runs: it exchanges two names of hers, again and again, as fast as it can. Arguments: the names."""

import ctypes
import os
import sys

_EXCHANGE = 2  # RENAME_EXCHANGE: both names are there at every moment
_HERE = -100  # AT_FDCWD


def main() -> None:
    """Exchange until killed. A name that is gone meanwhile comes back, or does not."""
    one, other = map(os.fsencode, sys.argv[1:])
    libc = ctypes.CDLL(None, use_errno=True)
    print("racing", flush=True)
    while True:
        libc.renameat2(_HERE, one, _HERE, other, _EXCHANGE)


if __name__ == "__main__":
    main()

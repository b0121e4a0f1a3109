"""A program of its own that destroys bookmarks of ours in one transaction: `zfs destroy` takes one, and each starts and waits by itself.

Why no channel program: these create bookmarks, and destroy none. Source: OpenZFS, lib/libzfs_core/libzfs_core.c, `lzc_destroy_bookmarks`.
"""

import ctypes
import os
import sys

_CORE, _PAIRS = "libzfs_core.so.3", "libnvpair.so.3"  # of OpenZFS 2.0 and later
_UNIQUE_NAMES = 1


def program() -> None:
    """Destroy the bookmarks that the arguments name, and end with 0; one that is gone is fine. Else with 1: the script does it one by one."""
    names = sys.argv[1:]
    if not all("#" in name for name in names):
        sys.exit(1)
    try:
        core, pairs = ctypes.CDLL(_CORE), ctypes.CDLL(_PAIRS)
        gone, failed = ctypes.c_void_p(), ctypes.c_void_p()
        failure = core.libzfs_core_init() or pairs.nvlist_alloc(ctypes.byref(gone), ctypes.c_uint(_UNIQUE_NAMES), 0)
        for name in names:
            failure = failure or pairs.nvlist_add_boolean(gone, os.fsencode(name))
        failure = failure or core.lzc_destroy_bookmarks(gone, ctypes.byref(failed))
    except (OSError, AttributeError):  # no such library
        failure = 1
    sys.exit(1 if failure else 0)

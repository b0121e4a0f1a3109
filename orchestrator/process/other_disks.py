"""The disks that a process with mounts of its own has no part in: it lets go of them, so that who unmounts one elsewhere does not find it busy.

Only where an unmount elsewhere does not come through to it, as without systemd. `without-links.pl` does the same for its programs.
"""

import ctypes
import os
import re
import sys
from collections.abc import Collection

from orchestrator.domain.names import unescape_mount_path

_DETACHED = 2  # MNT_DETACH. Source: umount2(2)
# Of the system, or of users' homes, where programs and libraries are read.
_SYSTEM = re.compile(r"/(?:$|(?:usr|etc|var|home|root|opt|boot|nix|lib\w*|s?bin)(?:/|$))")


def let_go_of_disks(libc: ctypes.CDLL, words: Collection[str]) -> None:
    """Unmount here what belongs to no path in some words, to no program of ours, and to no system. In mounts of this process's own alone."""
    used = [f"{each}/" for each in (*words, os.readlink("/proc/self/cwd"), __file__, sys.prefix, sys.base_prefix)]
    trees = [f"{each.rstrip('/')}/" for each in words if each.startswith("/")]
    for place in reversed(_disks()):
        if not any(f"{place}/" in each for each in used) and not any(f"{place}/".startswith(each) for each in trees):
            libc.umount2(os.fsencode(place), _DETACHED)


def _disks() -> list[str]:
    """Return where disks are mounted, the first first; none where unmounts come through."""
    found = list[str]()
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as mounts:
        for line in mounts:
            told, _, filesystem = line.partition(" - ")
            fields, (kind, device) = told.split(" "), filesystem.split(" ")[:2]
            if fields[4] == "/" and any(each.startswith("master:") for each in fields[6:]):
                return []
            if not _SYSTEM.match(fields[4]) and (kind == "zfs" or device.startswith("/dev/")):
                found.append(unescape_mount_path(fields[4]))
    return found

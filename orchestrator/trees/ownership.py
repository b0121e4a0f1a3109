"""Check of files and folders that decide what poolferry does here: nobody else may write them, or a folder above them.

Why: whoever can change one of these, or put a link in its place, has the rights of the user that runs poolferry, which is root
where disks and pools are.
"""

import os
import shlex
import stat
from collections.abc import Iterable, Iterator

from orchestrator.domain.errors import ConfigMistake
from orchestrator.domain.names import show_name


def writable_by_others(paths: Iterable[str], seen: set[str] | None = None) -> Iterator[ConfigMistake]:
    """Yield a mistake for each of these files, and each folder above them, that another user may change.

    Both paths of a file count: the written one, and the real one behind links. A missing file is no mistake here.
    """
    done = set() if seen is None else seen
    for path in paths:
        for way in (os.path.abspath(path), os.path.realpath(path)):
            for each in _upwards(way):
                if each in done:
                    continue
                done.add(each)
                yield from _judge(each, above=each != way)


def _upwards(path: str) -> Iterator[str]:
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _judge(path: str, *, above: bool) -> Iterator[ConfigMistake]:
    try:
        found = os.lstat(path)
    except OSError:
        return
    user = os.geteuid()
    if stat.S_ISLNK(found.st_mode):
        if found.st_uid not in (0, user):
            yield _mistake(path, f"is a link of {_owner(found.st_uid)}", f"chown -h {_name(user)}", user)
        return
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in (0, user):
        yield _mistake(path, f"belongs to {_owner(found.st_uid)}", f"chown {_name(user)}", user)
        return
    # In a folder with the sticky bit, such as /tmp, users can replace only their own files.
    if above and mode & stat.S_ISVTX:
        return
    groups = (0,) if user == 0 else (0, os.getegid())  # a user's own group, as Debian makes one for each user
    loose = [word for word, bit in (("g", stat.S_IWGRP), ("o", stat.S_IWOTH)) if mode & bit]
    if loose == ["g"] and found.st_gid in groups:
        return
    if loose:
        yield _mistake(path, f"others may write it (mode {mode:04o})", f"chmod {''.join(loose)}-w", user)


def _mistake(path: str, what: str, command: str, user: int) -> ConfigMistake:
    expected = f"{_name(user)} alone to write it: {command} {shlex.quote(show_name(path))}"
    return ConfigMistake(file=show_name(path), line=None, key="", what=what, expected=expected)


def _owner(number: int) -> str:
    return f"the user {_name(number)}"


def _name(number: int) -> str:
    if number == 0:
        return "root"
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)

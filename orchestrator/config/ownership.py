"""Check of the files that decide which commands run here: nobody else may write them, or a folder above them.

Why: whoever can change one of these has the rights of the user that runs poolferry, which is root where disks and pools are.
The files are the configuration, hooks and keys.
"""

import os
import shlex
import stat
from collections.abc import Iterable, Iterator

from orchestrator.domain.errors import ConfigMistake
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name

_KEY_OPTION = "identityfile="


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


def called_files(job: Job, directory: str) -> Iterator[str]:
    """Yield the files that a job runs or trusts: hooks, the drill's check-command, ssh keys, sanoid's configuration."""
    for _, commands in job.hooks.calls:
        yield from (found for argv in commands for found in hook_files(argv[0], directory))
    if job.drill.check_command and job.drill.check_command[0].startswith("/"):
        yield job.drill.check_command[0]
    yield from _keys(job.pipe.ssh_options)
    if job.snapshots and job.snapshots.use:
        yield job.snapshots.use


def hook_files(program: str, directory: str) -> tuple[str, ...]:
    """Return the file of a hook that is named by a path or lies in the configuration's hooks/; others belong to the system."""
    if "/" in program:
        return (program,)
    own = os.path.join(directory, "hooks", program)
    return (own,) if os.path.lexists(own) else ()


def _keys(options: tuple[str, ...]) -> Iterator[str]:
    """Yield the private keys that ssh options name: -i FILE, -iFILE, -o IdentityFile=FILE."""
    words = list(options)
    for word, after in zip(words, [*words[1:], ""], strict=False):
        found = after if word == "-i" else word[2:] if word.startswith("-i") else ""
        plain = (after if word == "-o" else word.removeprefix("-o")).strip()
        if plain.lower().startswith(_KEY_OPTION):
            found = plain[len(_KEY_OPTION) :]
        if found.startswith("/"):
            yield found

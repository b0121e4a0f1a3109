"""The start of poolferry.pyz: unpack what it carries into a folder of this user alone, once, and become the command in it.

Why unpacked: scripts, templates and compiled modules are files. Why no ready-made unpacker: they unpack below $HOME, which for root
may be another user's (`sudo -E`), into folders that others may enter. FILES is in the archive: each file with its SHA-256.

Each program that runs holds a lock on USED in its folder. A newer version removes, when it is unpacked, what nobody runs and what was
not started for a month: a daemon goes on reading files of the version that it was started as.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import zipfile

FILES = "poolferry.files"
PYTHONS = ((3, 11), (3, 12), (3, 13))
VARIABLE = "POOLFERRY_UNPACK"
USED = "used"
UNUSED_AFTER = 30 * 86400  # seconds


def main() -> None:
    """Unpack, where that is not done, and run the command with the words that came."""
    archive = os.path.realpath(sys.argv[0])
    if sys.version_info[:2] not in PYTHONS:
        known = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        fail(f"this is Python {sys.version_info[0]}.{sys.version_info[1]}; poolferry.pyz carries modules for {known}")
    try:
        program = unpacked(archive)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        fail(f"{archive} cannot be unpacked: {error}; {VARIABLE}=DIR names another folder for it")
    python = os.path.join(program, "bin/python3")
    os.execv(python, [python, "-I", os.path.join(program, "bin/poolferry"), archive, *sys.argv[1:]])  # noqa: S606


def fail(why: str) -> None:
    """End with a message, as wrong usage."""
    sys.stderr.write(f"poolferry: {why}\n")
    sys.exit(2)


def unpacked(archive: str) -> str:
    """Return the folder with the program. Raises: OSError · ValueError for a folder that is not ours alone, or a damaged archive."""
    with zipfile.ZipFile(archive) as held:
        listed = held.read(FILES)
        name = f"{hashlib.sha256(listed).hexdigest()[:32]}-{sys.version_info[0]}.{sys.version_info[1]}"
        above = usual_folder()
        os.makedirs(above, mode=0o700, exist_ok=True)
        require_own(above)
        program = os.path.join(above, name)
        if os.path.isdir(program):
            require_own(program)
            if hold(program):
                return program
        work = tempfile.mkdtemp(dir=above, prefix=".unpacking-")  # 0700
        try:
            write_files(held, listed.decode(), work)
            os.sync()  # a name that a power cut leaves must not be one of empty files
            os.rename(work, program)
        except OSError:
            if not os.path.isdir(program):  # another start may have been faster
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
        hold(program)
        remove_unused(above)
        return program


def hold(program: str) -> bool:
    """Note that the program is started now, and lock it for as long as it runs. Return False when it was removed meanwhile."""
    try:
        used = os.open(os.path.join(program, USED), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return False
    except OSError:  # a filesystem that is full, or only to be read: it runs all the same
        return True
    fcntl.flock(used, fcntl.LOCK_SH)
    os.utime(used)
    os.set_inheritable(used, True)  # it stays open in what this process becomes
    return os.path.isdir(program)


def remove_unused(above: str) -> None:
    """Remove the versions that nobody runs and that were not started for a month, and what a start that was killed left."""
    for entry in list(os.scandir(above)):
        mark = entry.path if entry.name.startswith(".unpacking-") else os.path.join(entry.path, USED)
        with contextlib.suppress(OSError):
            if time.time() - os.lstat(mark).st_mtime < UNUSED_AFTER:
                continue
            seen = os.open(mark, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(seen, fcntl.LOCK_EX | fcntl.LOCK_NB)
                away = tempfile.mkdtemp(dir=above, prefix=".unpacking-")
                os.rename(entry.path, away)  # who starts it now finds none
                shutil.rmtree(away, ignore_errors=True)
            finally:
                os.close(seen)


def usual_folder() -> str:
    """Return the folder for what is unpacked: for root none that a user's environment names."""
    if asked := os.environ.get(VARIABLE):
        return os.path.abspath(asked)
    if os.geteuid() == 0:
        return "/var/lib/poolferry-program"
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "poolferry-program")


def require_own(folder: str) -> None:
    """Check that only root and we can change the folder, or exchange one above it. Raises: ValueError."""
    path = os.path.realpath(folder)
    about = os.stat(path)
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise ValueError(f"{path} is not of this user alone: chmod 700 it, or remove it")
    while path != "/":
        path = os.path.dirname(path)
        about = os.stat(path)
        sticky, shared = about.st_mode & stat.S_ISVTX, about.st_mode & 0o022
        if about.st_uid not in (0, os.geteuid()) or (shared and not sticky):
            raise ValueError(f"others may exchange what lies in {path}")


def write_files(held: zipfile.ZipFile, listed: str, into: str) -> None:
    """Write each listed file, compared with its digest, and make the folder an environment of this Python."""
    for line in listed.splitlines():
        digest, mode, name = line.split(" ", 2)
        content = held.read(name)
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"{name} is damaged")
        path = os.path.join(into, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(content)
        os.chmod(path, int(mode, 8))
    python = os.path.realpath(sys.executable)
    with open(os.path.join(into, "pyvenv.cfg"), "x", encoding="utf-8") as file:
        file.write(f"home = {os.path.dirname(python)}\ninclude-system-site-packages = false\n")
    os.symlink(python, os.path.join(into, "bin/python3"))
    site = os.path.join(into, f"lib/python{sys.version_info[0]}.{sys.version_info[1]}")
    os.makedirs(site)
    os.symlink("../../site-packages", os.path.join(site, "site-packages"))


main()

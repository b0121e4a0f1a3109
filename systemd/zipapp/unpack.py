"""The start of poolferry.pyz: unpack what it carries into a folder of this user alone, once, and become the command in it.

Why unpacked: scripts, templates and compiled modules are files. Why no ready-made unpacker: they unpack below $HOME, which for root
may be another user's (`sudo -E`), into folders that others may enter. FILES is in the archive: each file with its SHA-256.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import zipfile

FILES = "poolferry.files"
PYTHONS = ((3, 11), (3, 12), (3, 13))
VARIABLE = "POOLFERRY_UNPACK"


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
    os.execv(python, [python, "-P", os.path.join(program, "bin/poolferry"), archive, *sys.argv[1:]])  # noqa: S606


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
        return program


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

"""Changes of the configuration's own files: all of them valid together, or none; each replaced whole, with its owner and mode."""

import errno
import os
import shutil
from collections.abc import Iterable, Mapping

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.trees.beneath import Folder

TARGETS = "targets.toml"


def read_config_files(directory: str) -> dict[str, str]:
    """Return the text of each file of a configuration, by its path below the directory. Raises: OSError."""
    names = [name for name in (TARGETS, "poolferry.toml") if os.path.exists(os.path.join(directory, name))]
    jobs = os.path.join(directory, "jobs")
    held = sorted(os.listdir(jobs)) if os.path.isdir(jobs) else []
    names += [f"jobs/{name}" for name in held if name.endswith(".toml")]
    return {name: read_text(os.path.join(directory, name)) for name in names}


def create_new_file(path: str, content: bytes, *, mode: int | None = None, folders: int = 0o777) -> bool:
    """Write a file that is not there, and the folders above it: whole or not at all. Return False where it is there just so.

    `mode`: of the file, `folders`: of those that are made; without one as the umask lets it. So a command that was cut in the middle of
    several files goes on when it is said again. Raises: FileExistsError · OSError.
    """
    above, name = os.path.split(os.path.abspath(path))
    os.makedirs(above, mode=folders, exist_ok=True)
    try:
        with Folder.at_place(above) as folder:
            folder.create_file(name, content, mode=0o666 & ~_umask() if mode is None else mode)
    except FileExistsError:
        if holds(path, content):
            return False
        raise
    return True


def holds(path: str, content: bytes) -> bool:
    """Return True where a file has exactly this content."""
    try:
        with Folder.at_place(os.path.dirname(path)) as folder:
            return folder.read_file(os.path.basename(path), limit=len(content)) == content
    except OSError:
        return False


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def require_valid(settings: Settings, files: Mapping[str, str]) -> None:
    """Read the configuration as it will be with these files and no others. Raises: DeclarationError, with paths as they will be."""
    from tempfile import TemporaryDirectory

    where = settings.where
    with TemporaryDirectory(prefix="poolferry-") as folder:  # 0700
        os.mkdir(f"{folder}/jobs")
        if os.path.isdir(gates := os.path.join(where.config, "gates")):
            shutil.copytree(gates, f"{folder}/gates")  # by them it is judged what may be pruned
        for name, text in files.items():
            with open(f"{folder}/{name}", "w", encoding="utf-8", newline="") as file:
                file.write(text)
        then = replace(where, config=folder)
        try:
            jobs = compose.read_configuration(then).jobs
            compose.read_machine_config(then, [job.name for job in jobs])
        except DeclarationError as error:
            named = (replace(each, file=each.file.replace(folder, where.config, 1)) for each in error.mistakes)
            raise DeclarationError(tuple(named)) from None


def read_text(path: str) -> str:
    """Return a file's text with its line ends as they are. Raises: OSError."""
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def replace_file(path: str, text: str, *, mode: int | None = None) -> None:
    """Write a file whole or not at all, with the owner that it has and, if none is given, its mode; a link leads to the file itself.

    It is on the disk when this returns, with its name. Raises: OSError.
    """
    path = os.path.realpath(path)
    there = os.stat(path) if os.path.exists(path) else None
    mode = mode if mode is not None else there.st_mode & 0o777 if there else 0o644
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(f"{path}.new", flags, mode), "w", encoding="utf-8", newline="") as file:
        if there:
            os.fchown(file.fileno(), there.st_uid, there.st_gid)
        os.fchmod(file.fileno(), mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)
    sync_folder(os.path.dirname(path))


def remove_files(paths: Iterable[str]) -> None:
    """Remove files; that they are gone is on the disk when this returns. Raises: OSError."""
    paths = tuple(paths)
    for path in paths:
        os.unlink(path)
    for folder in dict.fromkeys(map(os.path.dirname, paths)):
        sync_folder(folder)


def sync_folder(path: str) -> None:
    """Bring the names in a folder to the disk, as they are now: a name outlives a power cut only then. Raises: OSError.

    A filesystem that syncs no folders (EINVAL, see fsync(2)), such as some of networks, has done what it can.
    """
    fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(fd)

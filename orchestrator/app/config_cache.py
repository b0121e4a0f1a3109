"""The daemon's configuration: the last version without a mistake, kept as a copy beside the history.

A run is another process, which reads the files itself: the files of the owner while they are unchanged, else the copy. So
half-written files make no run fail, not even after a restart.
"""

import contextlib
import os
import shutil
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import ConfigMistake, DeclarationError
from orchestrator.domain.fast_dataclass import dataclass, replace

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.machine import MachineConfig

_TOP = ("poolferry.toml", "targets.toml")
_DIGEST = ".digest"  # of the copied files, beside them
_TRIES = 5
ConfigFingerprint = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConfig:
    """A configuration without a mistake. `mistakes`: those of the current files, when this is an older one.

    `no_copy`: why there is no copy of it; then runs read the files as they are.
    """

    configuration: "Configuration"
    machine: "MachineConfig"
    mark: ConfigFingerprint
    mistakes: tuple[str, ...] = ()
    no_copy: str = ""


def reload_config(where: compose.Directories, before: LoadedConfig | None) -> LoadedConfig:
    """Load the files; when they have mistakes, use the version before. Raises: DeclarationError when there is none."""
    try:
        return _read(where)
    except DeclarationError as error:
        told = tuple(str(mistake) for mistake in error.mistakes)
        if before is not None:
            return replace(before, mistakes=told)
        copy = replace(where, config=config_copy_folder(where))
        if not _is_as_copied(copy.config):
            raise
        try:
            kept = _loaded(copy)
        except DeclarationError:
            raise error from None
        return replace(kept, mark=(), mistakes=told)


def _read(where: compose.Directories) -> LoadedConfig:
    """Load the configuration and copy it. Why several tries: the files that were read and the copied ones must be the same."""
    for _ in range(_TRIES):
        kept = _loaded(where)
        try:
            _copy(where)
        except OSError as error:
            return replace(kept, no_copy=f"{error.filename or config_copy_folder(where)}: {error.strerror or error}")
        if config_fingerprint(where.config) == kept.mark:
            break
    return kept


def _loaded(where: compose.Directories) -> LoadedConfig:
    now = config_fingerprint(where.config)
    mistakes: tuple[ConfigMistake, ...] = ()
    try:
        machine = compose.read_machine_config(where)
    except DeclarationError as error:
        mistakes = error.mistakes
    try:
        configuration = compose.read_configuration(where)
    except DeclarationError as error:
        raise DeclarationError((*error.mistakes, *mistakes)) from None
    if mistakes:
        raise DeclarationError(mistakes)
    return LoadedConfig(configuration=configuration, machine=machine, mark=now)


def config_for_runs(where: compose.Directories, kept: LoadedConfig) -> str:
    """Return the directory that a run must read: the files themselves while they are unchanged, else the copy.

    A copy that is not as it was made is never used: the run then reads the files themselves, and names their mistakes.
    """
    if kept.no_copy or config_fingerprint(where.config) == kept.mark:
        return where.config
    copy = config_copy_folder(where)
    return copy if _is_as_copied(copy) else where.config


def config_copy_folder(where: compose.Directories) -> str:
    """Return the path of the copy."""
    return os.path.join(where.state, "last-good")


def config_fingerprint(directory: str) -> ConfigFingerprint:
    """Return a value that changes when a file is written, created or removed."""
    found = []
    for name in (*_TOP, *_files(directory, "jobs"), *_files(directory, "gates")):
        with contextlib.suppress(OSError):
            held = os.stat(os.path.join(directory, name))
            found.append((name, held.st_mtime_ns, held.st_size, held.st_ino))
    return tuple(found)


def _files(directory: str, folder: str) -> list[str]:
    try:
        names = os.listdir(os.path.join(directory, folder))
    except OSError:
        return []
    return sorted(os.path.join(folder, name) for name in names if name.endswith(".toml") and not name.startswith("."))


def _copy(where: compose.Directories) -> None:
    """Copy the files that were read, and link all else, such as hooks: a hook finds its own files beside them."""
    made, last = f"{config_copy_folder(where)}.new", config_copy_folder(where)
    shutil.rmtree(made, ignore_errors=True)
    os.makedirs(os.path.join(made, "jobs"), mode=0o700)
    os.chmod(made, 0o700)
    for name in _files(where.config, "jobs"):
        shutil.copy2(os.path.join(where.config, name), os.path.join(made, name))
    for name in sorted(os.listdir(where.config)):
        path = os.path.join(where.config, name)
        if name in _TOP:
            shutil.copy2(path, os.path.join(made, name))
        elif name != "jobs":
            os.symlink(path, os.path.join(made, name))
    with open(os.path.join(made, _DIGEST), "w", encoding="ascii") as file:
        file.write(_digest(made))
    shutil.rmtree(last, ignore_errors=True)
    os.rename(made, last)


def _digest(folder: str) -> str:
    """Return a digest over the names and contents of a copy's files. Raises: OSError."""
    import hashlib

    whole = hashlib.sha256()
    for name in (*_TOP, *_files(folder, "jobs")):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, name), "rb") as file:
            content = file.read()
            whole.update(f"{len(os.fsencode(name))} {len(content)}\n".encode() + os.fsencode(name) + content)
    return whole.hexdigest()


def _is_as_copied(folder: str) -> bool:
    """Return whether the copy's files are those that were copied; an earlier version made it without a digest."""
    if not os.path.lexists(os.path.join(folder, _DIGEST)):
        return os.path.isdir(folder)
    try:
        with open(os.path.join(folder, _DIGEST), "rb") as file:
            return file.read(100) == _digest(folder).encode()
    except OSError:
        return False

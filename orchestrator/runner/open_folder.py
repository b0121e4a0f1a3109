"""The end of a restore of a folder: the closed folder gets the owner, mode, time and attributes of the point's."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.plan import FolderOpening
from orchestrator.trees.beneath import Folder

_LISTS = ("system.posix_acl_access", "system.posix_acl_default")
# The comparison with the manifest, which follows, names what a filesystem or a user cannot have.
_CANNOT = (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EINVAL)


def open_folder(work: FolderOpening) -> None:
    """Give a restored folder its own metadata, by descriptors alone. Raises: OrchestratorError · OSError."""
    with (
        Folder.at_place(work.point.tree.path) as root,
        root.enter(work.path) if work.path else contextlib.nullcontext(root) as tree,
        Folder.at_place(work.to.path) as to,
    ):
        _require_marked(to, work)
        found = os.fstat(tree.fd)
        if work.owners:
            _give_owner(to.fd, found)
        _give_attributes(tree.fd, to.fd, work)
        if work.modes:
            os.fchmod(to.fd, stat.S_IMODE(found.st_mode))
        os.utime(to.fd, ns=(os.fstat(to.fd).st_atime_ns, found.st_mtime_ns))


def _require_marked(to: Folder, work: FolderOpening) -> None:
    """Check that the folder is the one that the restore has marked. Raises: VerificationFailed for another's · OSError."""
    try:
        marker, folder = to.status(work.marker), os.fstat(to.fd)
        if stat.S_ISREG(marker.st_mode) and marker.st_uid == folder.st_uid and to.is_ours():
            return
    except FileNotFoundError:
        pass
    raise VerificationFailed(
        f"{work.to} is not the folder that this restore has marked",
        hint="see who exchanged it, and run the command again",
    )


def _give_owner(fd: int, found: os.stat_result) -> None:
    try:
        os.fchown(fd, found.st_uid, found.st_gid)
    except PermissionError:  # an ordinary user: a group that is one of his own
        with contextlib.suppress(PermissionError):
            os.fchown(fd, -1, found.st_gid)


def _give_attributes(tree: int, to: int, work: FolderOpening) -> None:
    """Give the folder the access lists and attributes of the other, and take what it has besides."""
    wanted, held = ({name for name in _listed(fd) if _is_carried(name, work)} for fd in (tree, to))
    for name in sorted(held - wanted):
        with _suppressed():
            os.removexattr(to, name)
    for name in sorted(wanted):
        with _suppressed():
            os.setxattr(to, name, os.getxattr(tree, name))


def _listed(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    return []


def _is_carried(name: str, work: FolderOpening) -> bool:
    """Return whether an attribute is the job's, as rsync carries them: only root has others than those of users."""
    if name in _LISTS:
        return work.acls
    parts = ("user.", "trusted.", "security.") if os.geteuid() == 0 else ("user.",)
    return work.xattrs and name.startswith(parts)


@contextlib.contextmanager
def _suppressed() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _CANNOT:
            raise

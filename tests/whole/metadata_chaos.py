"""Random changes of contents and metadata of a tree, and digests of trees in which none of them may go unseen."""

import hashlib
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.whole.house import facts

# A capability to bind low ports, as `setcap cap_net_bind_service=ep` writes it. Source: linux/capability.h, revision 2.
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")
_BLOCK = 4096
FIXED = ("zz-large", "note")


class TreeChanger:
    """A changer of one tree, from a seed: contents, owners, modes, times, ACLs, attributes, links, holes, names and types."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self._root = root
        self._chance = chance
        self._number = 0

    def plant(self) -> None:
        """The first tree."""
        for number in range(40):
            self._file(self._root / f"d{number % 5}" / f"f{number}", self._chance.randbytes(number * 50))
        self._file(self._root / "d0/deep/er/file", b"deep")
        self._file(self._root / "zz-large", self._chance.randbytes(2 << 20))
        self.change(30)

    def change(self, count: int) -> None:
        """So many random changes."""
        chances = self._metadata() * 3 + self._others()
        for _ in range(count):
            self._chance.choice(chances)()

    def change_metadata(self, count: int) -> None:
        """So many random changes, and no new content."""
        for _ in range(count):
            self._chance.choice(self._metadata())()

    def _metadata(self) -> list[Callable[[], None]]:
        return [
            self._mode, self._mode, self._owner, self._owner, self._time, self._attribute, self._list, self._default_list,
            self._capability, self._capability_and_owner, self._join, self._part, self._rename, self._bare, self._trusted,
        ]  # fmt: skip

    def _others(self) -> list[Callable[[], None]]:
        return [
            self._write, self._write, self._append, self._cut, self._holes, self._remove, self._remove_folder, self._turn,
            self._turn, self._large, self._new_folder,
        ]  # fmt: skip

    def _all(self, *kinds: str) -> list[Path]:
        found = []
        for folder, folders, names in os.walk(self._root):
            found += [Path(folder, name) for name in sorted(folders + names)]
        return sorted(path for path in found if _kind(path) in kinds)

    def _pick(self, *kinds: str) -> Path | None:
        paths = self._all(*kinds)
        return self._chance.choice(paths) if paths else None

    def _new(self) -> Path:
        self._number += 1
        folders = [self._root, *self._all("d")]
        return self._chance.choice(folders) / f"n{self._number}"

    def _file(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def _id(self) -> int:
        return self._chance.choice((0, 1000, 1001, 1002, 4_000_000))

    def _mode(self) -> None:
        if path := self._pick("f", "d", "p", "c"):
            path.chmod(self._chance.choice((0o600, 0o644, 0o755, 0o4711, 0o2770, 0o1777, 0o444, 0o700)))

    def _owner(self) -> None:
        if path := self._pick("f", "d", "l", "p", "c"):
            os.chown(path, self._id(), self._id(), follow_symlinks=False)

    def _time(self) -> None:
        if path := self._pick("f", "d", "l", "p"):
            moment = self._chance.choice((self._chance.randrange(10**18), self._chance.randrange(2**33) * 10**9, 7))
            os.utime(path, ns=(moment, moment), follow_symlinks=False)

    def _attribute(self) -> None:
        if path := self._pick("f", "d"):
            os.setxattr(
                path,
                self._chance.choice(("user.a", "user.b")),
                self._chance.randbytes(self._chance.choice((0, 3, 300))),
            )

    def _trusted(self) -> None:
        if path := self._pick("f", "d", "l"):
            os.setxattr(path, "trusted.mark", self._chance.randbytes(4), follow_symlinks=False)

    def _list(self) -> None:
        if path := self._pick("f", "d"):
            right = self._chance.choice(("r", "rw", "rwx", "-"))
            subprocess.run(["setfacl", "-m", f"u:{1000 + self._chance.randrange(5)}:{right}", path], check=True)

    def _default_list(self) -> None:
        if path := self._pick("d"):
            subprocess.run(["setfacl", "-d", "-m", f"g:{1000 + self._chance.randrange(5)}:rx", path], check=True)

    def _bare(self) -> None:
        """No ACL and no attribute any more."""
        if path := self._pick("f", "d"):
            subprocess.run(["setfacl", "-b", path], check=True)
            for name in os.listxattr(path):
                os.removexattr(path, name)

    def _capability(self) -> None:
        if path := self._pick("f"):
            os.setxattr(path, "security.capability", CAPABILITY)

    def _capability_and_owner(self) -> None:
        if path := self._pick("f"):
            os.chown(path, self._id(), self._id())  # the kernel takes capabilities away from what gets an owner
            os.setxattr(path, "security.capability", CAPABILITY)

    def _join(self) -> None:
        if path := self._pick("f", "l", "p"):
            os.link(path, self._new(), follow_symlinks=False)

    def _part(self) -> None:
        """A file with several names loses the connection between them."""
        paths = [path for path in self._all("f") if path.stat().st_nlink > 1]
        if paths:
            path = self._chance.choice(paths)
            shutil.copy2(path, path.with_name(path.name + ".parted"))
            os.rename(path.with_name(path.name + ".parted"), path)

    def _rename(self) -> None:
        path, new = self._pick("f", "d", "l", "p", "c"), self._new()
        if path and path not in new.parents and path != new and path.name not in FIXED:
            os.rename(path, new)

    def _write(self) -> None:
        path = self._pick("f") if self._chance.random() < 0.5 else self._new()
        self._file(path or self._new(), self._chance.randbytes(self._chance.randrange(4000)))

    def _append(self) -> None:
        if path := self._pick("f"):
            with path.open("ab") as file:
                file.write(self._chance.randbytes(self._chance.randrange(1, 2000)))

    def _cut(self) -> None:
        if path := self._pick("f"):
            os.truncate(path, path.stat().st_size // 2)

    def _holes(self) -> None:
        path = self._pick("f") if self._chance.random() < 0.3 else self._new()
        with open(path or self._new(), "wb") as file:
            for _ in range(self._chance.randrange(3)):
                file.seek(self._chance.randrange(60) * 32 * _BLOCK)
                file.write(self._chance.randbytes(_BLOCK * self._chance.randrange(1, 4)))
            file.truncate(8 << 20)

    def _remove(self) -> None:
        path = self._pick("f", "l", "p", "c")
        if path and path.name not in FIXED:
            path.unlink()

    def _remove_folder(self) -> None:
        folders = self._all("d")
        if len(folders) > 5:
            shutil.rmtree(self._chance.choice(folders))

    def _new_folder(self) -> None:
        self._new().mkdir()

    def _turn(self) -> None:
        """An entry becomes one of another type."""
        path = self._pick("f", "l", "p", "c", "d")
        if path is None or path.name in FIXED:
            return
        if path.is_dir() and not path.is_symlink():
            if len(self._all("d")) < 6:
                return
            shutil.rmtree(path)
        else:
            path.unlink()
        match self._chance.randrange(5):
            case 0:
                path.symlink_to(self._chance.choice(("nowhere", "/etc/passwd", "..", "d1")))
            case 1:
                path.mkdir()
                self._file(path / "inside", b"inside")
            case 2:
                self._file(path, self._chance.randbytes(100))
            case 3:
                os.mkfifo(path)
            case 4:
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, self._chance.randrange(3, 9)))

    def _large(self) -> None:
        self._file(self._root / "zz-large", self._chance.randbytes((1 << 20) + self._chance.randrange(2 << 20)))


def _kind(path: Path) -> str:
    mode = path.lstat().st_mode
    return {stat.S_IFREG: "f", stat.S_IFDIR: "d", stat.S_IFLNK: "l", stat.S_IFIFO: "p"}.get(stat.S_IFMT(mode), "c")


def tree_digest(root: Path) -> str:
    """One digest over everything that can be seen of a tree."""
    return hashlib.sha256(repr(sorted(facts(root).items())).encode()).hexdigest()


def filled_holes(source: Path, copy: Path) -> list[str]:
    """The files of a copy that use more space than those of the source, by more than two blocks."""
    found = []
    for folder, _, names in os.walk(source):
        for name in names:
            one = Path(folder, name)
            other = copy / one.relative_to(source)
            if _kind(one) == "f" and other.lstat().st_blocks * 512 > one.lstat().st_blocks * 512 + 2 * _BLOCK:
                found.append(str(other))
    return found

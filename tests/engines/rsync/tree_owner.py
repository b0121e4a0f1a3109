"""An owner of files who changes them in every way that she can, and root for her."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

NAMES = ("a", "b", "c.tmp", "kept.tmp", "left", "x.none", "odd \n[*]\\#012", "fold", "deep", "top.d", "\udcff", "z")


class Owner:
    """An owner of files who does anything, with everything that she and root can do to them."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance = root, chance

    def all(self, *, folders: bool = True, files: bool = True) -> list[Path]:
        found = sorted(self.root.rglob("*"))
        plain = [each for each in found if each.is_file() and not each.is_symlink()]
        return plain * files + [each for each in found if each.is_dir() and not each.is_symlink()] * folders

    def act(self) -> None:
        acts: list[Callable[[], None]] = [
            self.write, self.write, self.make_folder, self.remove, self.chmod, self.chown, self.attribute, self.acl, self.link,
            self.rename, self.swap, self.set_time, self.rewrite_unseen, self.exchange, self.special, self.touch_only,
        ]  # fmt: skip
        self.chance.choice(acts)()

    def place(self) -> Path:
        above = self.chance.choice([self.root, *self.all(files=False)])
        return above / self.chance.choice(NAMES)

    def write(self) -> None:
        path = self.place()
        if not path.is_dir() and not path.is_symlink() and (not path.exists() or path.is_file()):
            path.write_text("x" * self.chance.randrange(50))

    def make_folder(self) -> None:
        path = self.place()
        if not os.path.lexists(path):
            path.mkdir()
            (path / self.chance.choice(NAMES)).write_text("inside")
            (path / "more").mkdir()
            (path / "more" / self.chance.choice(NAMES)).write_text("deeper")

    def one(self, **kinds: bool) -> Path | None:
        found = self.all(**kinds)
        return self.chance.choice(found) if found else None

    def remove(self) -> None:
        if path := self.one():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def chmod(self) -> None:
        if path := self.one():
            path.chmod(self.chance.choice([0o600, 0o755, 0o4711]))

    def chown(self) -> None:
        if path := self.one():
            os.chown(path, self.chance.randrange(3), 7, follow_symlinks=False)

    def attribute(self) -> None:
        if path := self.one():
            os.setxattr(path, "user.note", str(self.chance.random()).encode())

    def acl(self) -> None:
        if path := self.one():
            subprocess.run(["setfacl", "-m", f"u:{self.chance.randrange(2000, 2009)}:r", path], check=True)

    def link(self) -> None:
        path, to = self.one(folders=False), self.place()
        if path and not os.path.lexists(to):
            os.link(path, to)

    def rename(self) -> None:
        path, to = self.one(), self.place()
        if path and not os.path.lexists(to) and path not in to.parents:
            path.rename(to)

    def swap(self) -> None:
        one, other = self.one(folders=False), self.one(folders=False)
        if one and other and one != other:
            one.rename(self.root / "between")
            other.rename(one)
            (self.root / "between").rename(other)

    def set_time(self) -> None:
        if path := self.one():
            os.utime(path, ns=(1, self.chance.randrange(10**18)))

    def rewrite_unseen(self) -> None:
        """Another content with the size and the time as before."""
        if path := self.one(folders=False):
            seen = path.stat()
            path.write_text("y" * seen.st_size)
            os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    def touch_only(self) -> None:
        if path := self.one():
            path.chmod(path.stat().st_mode & 0o7777)

    def exchange(self) -> None:
        """Something of another kind in place of an entry."""
        if path := self.one():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            if self.chance.random() < 0.5:
                path.symlink_to("elsewhere/and\nfar")
            elif self.chance.random() < 0.5:
                path.mkdir()
            else:
                path.write_text("a file now")

    def special(self) -> None:
        path = self.place()
        if not os.path.lexists(path):
            if self.chance.random() < 0.5:
                os.mkfifo(path)
            else:
                path.symlink_to(f"to {self.chance.randrange(3)}")

"""A filesystem of the kernel's FUSE with faults and limits of its own, over a folder: `python -m tests.whole.odd_filesystem`.

It takes what real ones take (links, owners, times, attributes), but for what `Rules` forbids: an error for a name, shorter names,
names that are one for it though their letters differ in case, or in how an accent is written. Rules are read anew when their file changes.
"""

import ctypes
import errno
import json
import os
import re
import resource
import struct
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_HEADER = struct.Struct("<IIQQIIIHH")
_ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
_ENTRY = struct.Struct("<QQQQII")
_CREATES, _ROOT = ("symlink", "mknod", "mkdir", "create", "link", "rename"), 1
_OPERATIONS = {
    1: "lookup", 3: "getattr", 4: "setattr", 5: "readlink", 6: "symlink", 8: "mknod", 9: "mkdir", 10: "unlink", 11: "rmdir", 12: "rename",
    13: "link", 14: "open", 15: "read", 16: "write", 17: "statfs", 18: "release", 20: "fsync", 21: "setxattr", 22: "getxattr", 23: "listxattr",
    24: "removexattr", 25: "flush", 26: "init", 27: "opendir", 28: "readdir", 29: "release", 30: "fsync", 35: "create", 45: "rename",
}  # fmt: skip
_UNANSWERED = (2, 36, 42)


class OddFilesystem:
    """The server: each node is an open entry of the folder below, by its inode."""

    def __init__(self, below: str, rules: str) -> None:
        self.rules_file, self.rules_seen, self.rules = rules, -1, dict[str, Any]()
        self.nodes = {_ROOT: os.open(below, os.O_PATH | os.O_DIRECTORY)}
        self.names: dict[int, bytes] = {_ROOT: b""}
        self.handles: dict[int, int] = {}

    def serve(self, device: int) -> None:
        """Answer the kernel until it unmounts."""
        while True:
            try:
                request = os.read(device, (1 << 20) + 4096)
            except OSError as error:
                if error.errno == errno.EINTR:
                    continue
                return
            _, opcode, unique, node, *_ = _HEADER.unpack_from(request)
            if opcode in _UNANSWERED:
                continue
            try:
                answer, failed = self._act(opcode, node, request[_HEADER.size :]), 0
            except OSError as error:
                answer, failed = b"", error.errno or errno.EIO
            with suppress(FileNotFoundError):  # it was interrupted
                os.write(device, struct.pack("<IiQ", 16 + len(answer), -failed, unique) + answer)

    def _act(self, opcode: int, node: int, body: bytes) -> bytes:
        name = _OPERATIONS.get(opcode, "")
        action: Callable[[int, bytes], bytes] | None = getattr(self, f"_{name}", None) if name else None
        if action is None:
            raise OSError(errno.ENOSYS, "")
        return action(node, body)

    def _rule(self) -> dict[str, Any]:
        seen = os.stat(self.rules_file).st_mtime_ns
        if seen != self.rules_seen:
            self.rules, self.rules_seen = json.loads(Path(self.rules_file).read_text()), seen
        return self.rules

    def _allow(self, operation: str, name: bytes) -> None:
        """Raise the error that a rule has for this operation on this name."""
        rules = self._rule()
        if operation in _CREATES and len(name) > rules.get("longest", 255):
            raise OSError(errno.ENAMETOOLONG, "")
        for operations, pattern, number in rules.get("errors", ()):
            if operation in operations and re.search(os.fsencode(pattern), name):
                raise OSError(number, "")

    def _alike(self, name: bytes) -> bytes:
        text = os.fsdecode(name)
        text = unicodedata.normalize("NFD", text) if self._rule().get("accents") else text
        return os.fsencode(text.casefold() if self._rule().get("cases") else text)

    def _path(self, node: int, name: bytes = b"") -> bytes:
        folder = b"/proc/self/fd/%d" % self.nodes[node]
        if name and (self._rule().get("accents") or self._rule().get("cases")):
            wanted = self._alike(name)
            name = next((each for each in os.listdir(folder) if self._alike(each) == wanted), name)
        return folder + b"/" + name if name else folder

    def _facts(self, path: bytes, *, follow: bool) -> bytes:
        seen = os.stat(path, follow_symlinks=follow)
        grain = self._rule().get("grain", 1)
        times = [value // grain * grain for value in (seen.st_atime_ns, seen.st_mtime_ns, seen.st_ctime_ns)]
        whole, parts = [value // 10**9 & (1 << 64) - 1 for value in times], [value % 10**9 for value in times]
        return _ATTRIBUTES.pack(
            seen.st_ino, seen.st_size, seen.st_blocks, *whole, *parts, seen.st_mode, seen.st_nlink, seen.st_uid, seen.st_gid, seen.st_rdev,
            4096, 0,
        )  # fmt: skip

    def _entry(self, node: int, name: bytes) -> bytes:
        path = self._path(node, name)
        held = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        inode = os.fstat(held).st_ino
        self.names[inode] = name
        if inode in self.nodes:
            os.close(self.nodes[inode])
        self.nodes[inode] = held
        return _ENTRY.pack(inode, 0, 0, 0, 0, 0) + self._facts(path, follow=False)

    def _init(self, node: int, body: bytes) -> bytes:
        flags = struct.unpack_from("<I", body, 12)[0] & ((1 << 0) | (1 << 5))  # large reads and writes
        return struct.pack("<IIIIHHIIHHIII7I", 7, 31, 1 << 17, flags, 12, 9, 1 << 17, 1, 0, 0, 0, 0, 0, *[0] * 7)[:64]

    def _lookup(self, node: int, body: bytes) -> bytes:
        name = body[: body.index(0)]
        if len(name) > self._rule().get("longest", 255):
            raise OSError(errno.ENAMETOOLONG, "")
        self._allow("lookup", name)
        return self._entry(node, name)

    def _getattr(self, node: int, body: bytes) -> bytes:
        self._allow("getattr", self.names[node])
        return struct.pack("<QII", 0, 0, 0) + self._facts(self._path(node), follow=True)

    def _setattr(self, node: int, body: bytes) -> bytes:
        self._allow("setattr", self.names[node])
        valid, _, _, size, _, atime, mtime, _, atime_part, mtime_part, _, mode, _, uid, gid, _ = struct.unpack_from(
            "<IIQQQqqqIIIIIIII", body
        )
        path = self._path(node)
        if valid & 6:
            self._allow("chown", self.names[node])
            os.chown(path, uid if valid & 2 else -1, gid if valid & 4 else -1)
        if valid & 1:
            os.chmod(path, mode & 0o7777)
        if valid & 8:
            os.truncate(path, size)
        if valid & 0x30:
            seen = os.stat(path)
            times = atime * 10**9 + atime_part, mtime * 10**9 + mtime_part
            os.utime(
                path, ns=(times[0] if valid & 16 else seen.st_atime_ns, times[1] if valid & 32 else seen.st_mtime_ns)
            )
        return self._getattr(node, body)

    def _readlink(self, node: int, body: bytes) -> bytes:
        self._allow("readlink", self.names[node])
        return os.fsencode(os.readlink(b"", dir_fd=self.nodes[node]))

    def _symlink(self, node: int, body: bytes) -> bytes:
        name, text, _ = body.split(b"\0", 2)
        self._allow("symlink", name)
        os.symlink(text, self._path(node, name))
        return self._entry(node, name)

    def _mknod(self, node: int, body: bytes) -> bytes:
        mode, rdev, _, _ = struct.unpack_from("<IIII", body)
        name = body[16:-1]
        self._allow("mknod", name)
        os.mknod(self._path(node, name), mode, rdev)
        return self._entry(node, name)

    def _mkdir(self, node: int, body: bytes) -> bytes:
        name = body[8:-1]
        self._allow("mkdir", name)
        os.mkdir(self._path(node, name), struct.unpack_from("<I", body)[0] & 0o7777)
        return self._entry(node, name)

    def _unlink(self, node: int, body: bytes) -> bytes:
        os.unlink(self._path(node, body[:-1]))
        return b""

    def _rmdir(self, node: int, body: bytes) -> bytes:
        os.rmdir(self._path(node, body[:-1]))
        return b""

    def _rename(self, node: int, body: bytes) -> bytes:
        (to,), start = (
            struct.unpack_from("<Q", body),
            16 if body[12:16] == bytes(4) and body.count(b"\0", 16) >= 2 else 8,
        )
        old, new, _ = body[start:].split(b"\0", 2)
        self._allow("rename", new)
        os.rename(self._path(node, old), self._path(to, new))
        self.names[os.stat(self._path(to, new), follow_symlinks=False).st_ino] = new
        return b""

    def _link(self, node: int, body: bytes) -> bytes:
        name = body[8:-1]
        self._allow("link", name)
        os.link(self._path(struct.unpack_from("<Q", body)[0]), self._path(node, name), src_dir_fd=self.nodes[_ROOT])
        return self._entry(node, name)

    def _opened(self, descriptor: int) -> bytes:
        self.handles[descriptor] = descriptor
        return struct.pack("<QII", descriptor, 0, 0)

    def _open(self, node: int, body: bytes) -> bytes:
        self._allow("open", self.names[node])
        flags = struct.unpack_from("<I", body)[0] & ~(os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        return self._opened(os.open(self._path(node), flags))

    def _create(self, node: int, body: bytes) -> bytes:
        flags, mode, _, _ = struct.unpack_from("<IIII", body)
        name = body[16:-1]
        self._allow("create", name)
        made = os.open(self._path(node, name), (flags | os.O_CREAT) & ~(os.O_NOFOLLOW | os.O_APPEND), mode & 0o7777)
        return self._entry(node, name) + self._opened(made)

    def _read(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        self._allow("read", self.names[node])
        return os.pread(handle, size, offset)

    def _write(self, node: int, body: bytes) -> bytes:
        handle, offset, size = struct.unpack_from("<QQI", body)
        self._allow("write", self.names[node])
        return struct.pack("<II", os.pwrite(handle, body[40 : 40 + size], offset), 0)

    def _statfs(self, node: int, body: bytes) -> bytes:
        seen = os.statvfs(self._path(_ROOT))
        longest = self._rule().get("longest", 255)
        return struct.pack(
            "<QQQQQIIII6I", seen.f_blocks, seen.f_bfree, seen.f_bavail, seen.f_files, seen.f_ffree, seen.f_bsize, longest, seen.f_frsize, 0, *[0] * 6
        )  # fmt: skip

    def _release(self, node: int, body: bytes) -> bytes:
        handle = struct.unpack_from("<Q", body)[0]
        if handle:
            os.close(self.handles.pop(handle))
        return b""

    def _flush(self, node: int, body: bytes) -> bytes:
        return b""

    def _fsync(self, node: int, body: bytes) -> bytes:
        self._allow("fsync", self.names[node])
        return b""

    def _opendir(self, node: int, body: bytes) -> bytes:
        self._allow("opendir", self.names[node])
        return struct.pack("<QII", 0, 0, 0)

    def _readdir(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        names = sorted(os.listdir(self._path(node)))
        if offset or not names:
            self._allow("readdir", self.names[node])
        answer = b""
        for number, name in enumerate(names[offset:], offset + 1):
            record = struct.pack("<QQII", 1, number, len(name), 0) + name
            record += bytes(-len(record) % 8)
            if len(answer) + len(record) > size:
                break
            answer += record
        return answer

    def _setxattr(self, node: int, body: bytes) -> bytes:
        size, flags = struct.unpack_from("<II", body)
        name, value = body[8:].split(b"\0", 1)
        self._allow("setxattr", self.names[node])
        os.setxattr(self._path(node), name, value[:size], flags)
        return b""

    def _sized(self, body: bytes, value: bytes) -> bytes:
        size = struct.unpack_from("<I", body)[0]
        if not size:
            return struct.pack("<II", len(value), 0)
        if len(value) > size:
            raise OSError(errno.ERANGE, "")
        return value

    def _getxattr(self, node: int, body: bytes) -> bytes:
        return self._sized(body, os.getxattr(self._path(node), body[8:].split(b"\0", 1)[0]))

    def _listxattr(self, node: int, body: bytes) -> bytes:
        return self._sized(body, b"".join(os.fsencode(name) + b"\0" for name in os.listxattr(self._path(node))))

    def _removexattr(self, node: int, body: bytes) -> bytes:
        os.removexattr(self._path(node), body[:-1])
        return b""


class Rules:
    """The prohibitions of the filesystem: (operations, pattern of names, error number) each; the longest name; whether names are alike."""

    def __init__(self, file: Path, **rules: object) -> None:
        self._file = file
        self.set(**rules)

    def set(self, **rules: object) -> None:
        """Forbid this from now on, and nothing else."""
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(rules))
        new.replace(self._file)


@contextmanager
def odd_filesystem(folder: Path, **rules: object) -> Iterator[tuple[Path, Rules]]:
    """Mount one for as long as it is needed; its folder and its rules."""
    below, place = folder / "odd-below", folder / "odd"
    below.mkdir(parents=True)
    place.mkdir()
    told = Rules(folder / "odd-rules.json", **rules)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"odd", os.fsencode(place), b"fuse.odd", 6, options.encode()):  # nosuid, nodev
        raise OSError(ctypes.get_errno(), "mount")
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, str(device), str(below), str(told._file)], pass_fds=(device,)
    )
    os.close(device)
    try:
        yield place, told
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        server.wait(30)


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    OddFilesystem(sys.argv[2], sys.argv[3]).serve(int(sys.argv[1]))

"""Ways in which a copy goes bad, and names that break lesser programs."""

import os
import struct
from pathlib import Path

NAMES = (
    b"plain", b"with space", b" leading", b"trailing ", b"-dash", b"--delete", b"new\nline", b"tab\there", b"cr\rhere",
    b"latin-\xe9", b"utf-\xc3\xa9", b"quote'one", b'quote"two', b"$(touch PWNED)", b"`touch PWNED`", b"star*", b"[1]",
    b"1", b"back\\slash", b"\\#012", b"a:b", b"#hash", b";semi", b"\x1b[31m", b"x" * 255, b".x.AbC123", b"~", b"host:1",
)  # fmt: skip

# Root without its power to read everything: a file of mode 000 is then unreadable to its owner too.
WITHOUT_POWER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")


def fill(folder: Path) -> None:
    """A small tree that holds every name as a file, a folder and a link's target."""
    top = os.fsencode(folder)
    for name in NAMES:
        for path in (top + b"/" + name, top + b"/in/" + name + b"/file"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(b"of " + name)
        os.makedirs(top + b"/links", exist_ok=True)
        os.symlink(name, top + b"/links/" + name)
    os.link(top + b"/plain", top + b"/plain-again")


def rot(path: Path | bytes, at: int = 0) -> None:
    """One bit of the file is another; size and time are as before."""
    before = os.stat(path)
    with open(path, "r+b", buffering=0) as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes((byte ^ 1,)))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def begin_as_xfs(image: Path) -> None:
    """The first sector of xfs, which ext4 leaves as it was: whose the disk is now, nobody can tell."""
    blocks, groups = 16384, 4
    sector = struct.pack(">4sIQQQ", b"XFSB", 4096, blocks, 0, 0).ljust(80, b"\0")
    sector += struct.pack(">IIIIIHHHH", 1, blocks // groups, groups, 0, 1000, 4, 512, 256, 16)
    sector += b"poolferry".ljust(12, b"\0") + bytes((12, 9, 8, 4, 12, 0, 0, 25))
    with image.open("r+b") as file:
        file.write(sector)

"""The guest's kernel, made quick to start: the ELF image out of its shell, and an initramfs with just the root's modules."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.lab.common import LabError

_PACKED = (
    (b"\x28\xb5\x2f\xfd", ("zstd", "-dc")),
    (b"\xfd7zXZ\x00", ("xz", "-dc")),
    (b"\x1f\x8b\x08", ("gzip", "-dc")),
    (b"\x02!L\x18", ("lz4", "-dc")),
)
_ROOT_NEEDS = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic")
_INIT = """\
#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev
for number in {numbers}; do $b insmod /m/$number.ko; done
i=0; while [ ! -b /dev/vda ] && [ $i -lt 200 ]; do $b sleep 0.05; i=$((i+1)); done
$b mount -t ext4 -o rw /dev/vda /root && $b mount --move /dev /root/dev
exec $b switch_root /root /sbin/init
"""


def elf_kernel(bz_image: bytes) -> bytes:
    """The ELF kernel inside a bzImage: QEMU starts it at once, and nothing is unpacked under emulation. Raises LabError."""
    for magic, unpack in _PACKED:
        at = -1 if shutil.which(unpack[0]) else len(bz_image)
        while (at := bz_image.find(magic, at + 1)) >= 0:
            done = subprocess.run(unpack, input=bz_image[at:], capture_output=True)
            if done.stdout.startswith(b"\x7fELF"):
                return done.stdout
    raise LabError("no kernel was found inside the kernel's image; it may need one of the programs zstd, xz, gzip, lz4")


def initramfs(root: Path) -> bytes:
    """An archive of busybox, the modules that Debian's root needs, and an init that loads them and goes on."""
    modules = _modules(next((root / "lib/modules").iterdir()))
    busybox = next(path for path in (root / "usr/bin/busybox", root / "bin/busybox") if path.exists())
    files: dict[str, bytes | None] = {
        "bin": None,
        "dev": None,
        "root": None,
        "m": None,
        "bin/busybox": busybox.read_bytes(),
    }
    files |= {f"m/{number}.ko": path.read_bytes() for number, path in enumerate(modules)}
    files["init"] = _INIT.format(numbers=" ".join(str(number) for number in range(len(modules)))).encode()
    archive = bytearray()
    for number, (name, data) in enumerate([*files.items(), ("TRAILER!!!", b"")], 1):
        archive += b"".join(_entry(number, name.encode() + b"\0", data))
    return bytes(archive)


def _entry(number: int, name: bytes, data: bytes | None) -> Iterator[bytes]:
    """One entry of a "newc" cpio archive; no data means a folder. Source: the kernel's buffer-format.rst."""
    mode = 0o40755 if data is None else 0o100755
    fields = (number, mode, 0, 0, 1, 0, len(data or b""), 0, 0, 0, 0, len(name), 0)
    yield b"070701" + b"".join(b"%08x" % field for field in fields) + name
    yield bytes(-(110 + len(name)) % 4)
    yield data or b""
    yield bytes(-len(data or b"") % 4)


def _modules(folder: Path) -> list[Path]:
    """The modules the root needs and what these need, each after its own needs."""
    needs = dict(line.split(":") for line in (folder / "modules.dep").read_text().splitlines())
    by_name = {Path(path).name.partition(".ko")[0].replace("-", "_"): path for path in needs}
    order: list[str] = []

    def add(path: str) -> None:
        for needed in needs[path].split():
            add(needed)
        if path not in order:
            order.append(path)

    for name in _ROOT_NEEDS:
        if name in by_name:  # the others are built in
            add(by_name[name])
    return [folder / path for path in order]

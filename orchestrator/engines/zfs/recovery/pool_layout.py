"""The layout of a pool: from `zpool status` to the command that creates it again, with persistent disk names."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from orchestrator.domain.fast_dataclass import dataclass

# The heading of a class of devices, and its name in `zpool create`. Source: zpoolconcepts(7).
_CLASSES = {"special": "special", "dedup": "dedup", "logs": "log", "cache": "cache", "spares": "spare"}
_GROUP = re.compile(r"(mirror|raidz[123]|draid\S*?)-\d+")
_PASSING = re.compile(r"(replacing|spare)-\d+")
# Among links to one disk, names that people know come first.
_LINK_PREFIXES = ("ata-", "nvme-", "scsi-", "usb-", "virtio-", "wwn-", "dm-", "")
_PART = re.compile(r"-part\d+$")
# Properties of the pool itself or of this machine, not of its creation.
_NOT_MADE = frozenset("altroot bootfs cachefile readonly guid load_guid".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutVdev:
    """One line of the layout: its depth and its name."""

    depth: int
    name: str


def parse_config(lines: Iterable[str]) -> tuple[LayoutVdev, ...]:
    """Parse the devices that `zpool status` lists, the pool first."""
    found: list[LayoutVdev] = []
    inside = False
    for line in lines:
        if line.startswith("\tNAME "):
            inside = True
        elif inside and not line.startswith("\t"):
            break
        elif inside and line.strip():
            text = line[1:]
            found.append(LayoutVdev(depth=(len(text) - len(text.lstrip(" "))) // 2, name=text.split()[0]))
    return tuple(found)


def create_pool_arguments(
    vdevs: tuple[LayoutVdev, ...],
    links: Mapping[str, str],
    properties: Mapping[str, str],
    root: Mapping[str, str],
    ashift: int,
) -> tuple[str, ...]:
    """Build the words of `zpool create`. `properties`: of the pool; `root`: of its root dataset."""
    words = ["zpool", "create"]
    words += ["-o", f"ashift={ashift}"] if ashift else []
    for name, value in properties.items():
        if name not in _NOT_MADE and name != "ashift" and not name.startswith("feature@"):
            words += ["-o", f"{name}={value}"]
    for name, value in root.items():
        words += ["-O", f"{name}={value}"]
    pool = vdevs[0].name if vdevs else "POOL"
    return (*words, pool, *_devices(vdevs[1:], links))


def show_arguments(words: Iterable[str]) -> str:
    """Return the words as a command line that a person can paste."""
    return shlex.join(words)


def _devices(vdevs: tuple[LayoutVdev, ...], links: Mapping[str, str]) -> Iterator[str]:
    for place, vdev in enumerate(vdevs):
        if vdev.depth == 0 and vdev.name in _CLASSES:
            yield _CLASSES[vdev.name]
        elif group := _GROUP.fullmatch(vdev.name):
            yield group[1]
        elif not _PASSING.fullmatch(vdev.name) and not _goes(vdevs, place):
            yield disk_by_id(vdev.name, links)


def _goes(vdevs: tuple[LayoutVdev, ...], place: int) -> bool:
    """Return whether another disk replaces this one: only the last below a `replacing` or `spare` stays."""
    depth = vdevs[place].depth
    above = next((one for one in reversed(vdevs[:place]) if one.depth < depth), None)
    after = vdevs[place + 1] if place + 1 < len(vdevs) else None
    return above is not None and bool(_PASSING.fullmatch(above.name)) and after is not None and after.depth == depth


def disk_by_id(path: str, links: Mapping[str, str]) -> str:
    """Return a disk's persistent name, and the whole disk where ZFS had all; a file keeps its path."""
    real = links.get(path, path)
    names = sorted((name for name, to in links.items() if to == real and "/by-id/" in name), key=_preferred)
    name = names[0] if names else path
    whole = _PART.sub("", name)
    # ZFS makes parts 1 and 9 on a disk that it uses whole.
    return whole if name.endswith("-part1") and f"{whole}-part9" in links else name


def _preferred(name: str) -> tuple[int, str]:
    last = name.rpartition("/")[2]
    return next(place for place, kind in enumerate(_LINK_PREFIXES) if last.startswith(kind)), name

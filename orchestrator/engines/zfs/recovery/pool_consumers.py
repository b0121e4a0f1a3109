"""Pools that lie on another pool: on its volumes, or on files in it, through any number of layers.

A layer is a partition, a device of device mapper, md or loop, a file in a mounted filesystem, or another pool.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchestrator.domain.evacuation import GuestPool
from orchestrator.domain.fast_dataclass import dataclass

_ZVOLS = "/dev/zvol/"
_VOLUME = "/dev/zd"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLayers:
    """The storage layers of this machine, and how they lie on each other.

    `pools`: by name, the devices and files of each imported pool; `parents`: by device, the devices under it; `files`: by loop
    device, its file; `volumes`: by device, the volume's name as udev writes it; `mounts`: (what, folder).
    """

    pools: Mapping[str, tuple[str, ...]]
    parents: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]
    volumes: Mapping[str, str]
    mounts: Sequence[tuple[str, str]]


def parse_storage_layers(parts: Mapping[str, Sequence[str]], mounts: Sequence[tuple[str, str]]) -> StorageLayers:
    """Parse `zpool list -HvPL`, `lsblk -rnpo KNAME,PKNAME`, `losetup -nlO NAME,BACK-FILE` and udev's links."""
    parents: dict[str, tuple[str, ...]] = {}
    for line in parts.get("=blocks", ()):
        name, _, parent = line.strip().partition(" ")
        parents[name] = (*parents.get(name, ()), *([parent] if parent else []))
    loops = (line.strip().partition(" ") for line in parts.get("=loops", ()))
    links = (line.partition("\t") for line in parts.get("=volumes", ()))
    return StorageLayers(
        pools=parse_pools(parts.get("=pools", ())),
        parents=parents,
        files={name: file.strip() for name, _, file in loops},
        volumes={f"/dev/{to.rpartition('/')[2]}": link.removeprefix(_ZVOLS) for link, _, to in links},
        mounts=mounts,
    )


def parse_pools(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Parse the devices and files of each pool. A heading (logs, cache, spare) is the only line without a tab."""
    found: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in lines:
        first = line.strip("\t").partition("\t")[0]
        if line.startswith("\t"):
            found[name] = (*found[name], *([first] if first.startswith("/") else []))
        elif "\t" in line:
            name = first
            found[name] = ()
    return found


def find_guest_pools(
    pool: str, datasets: Iterable[str], volumes: Iterable[str], ground: StorageLayers
) -> tuple[GuestPool, ...]:
    """Return the pools that would be lost with a pool, each device with the dataset that contains it.

    `datasets`: all of the pool; `volumes`: those that are volumes. A volume's device without a name from udev may be one of
    these: its dataset is then "".
    """
    known = {name.replace(" ", "+"): name for name in datasets}  # as udev's zvol_id writes it
    some = next(iter(volumes), None) is not None

    def below(place: str, seen: frozenset[str]) -> Iterator[str]:
        if place in seen:
            return
        seen |= {place}
        for what in _beneath(place, ground):
            if what.startswith("/"):
                yield from below(what, seen)
            elif what in known:
                yield known[what]
            else:
                for device in ground.pools.get(what.partition("/")[0], ()):
                    yield from below(device, seen)
        if some and place.startswith(_VOLUME) and not ground.parents.get(place) and place not in ground.volumes:
            yield ""

    return tuple(
        GuestPool(pool=name, device=device, dataset=dataset)
        for name, devices in ground.pools.items()
        for device in devices
        for dataset in dict.fromkeys(below(device, frozenset()))
        if name != pool
    )


def _beneath(place: str, ground: StorageLayers) -> Iterator[str]:
    """Yield the layers under a device or a file: devices and files by path, datasets by name."""
    if place in ground.volumes:
        yield _whole(ground.volumes[place], ground)
    elif parents := ground.parents.get(place):
        yield from parents
    elif place in ground.files:
        yield ground.files[place]
    elif not place.startswith("/dev/"):
        over = [(what, at) for what, at in ground.mounts if place.startswith(f"{at.rstrip('/')}/")]
        if over:
            yield max(reversed(over), key=lambda each: len(each[1]))[0].replace(" ", "+")


def _whole(volume: str, ground: StorageLayers) -> str:
    """Return the volume of a link: partitions have links of their own, with -part1 at the end."""
    whole, dash, number = volume.rpartition("-part")
    return whole if dash and number.isdigit() and whole in ground.volumes.values() else volume

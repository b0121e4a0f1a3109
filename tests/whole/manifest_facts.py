"""The entries that a point's manifest tells, and those that are there; and whether a run carried the lines of the manifest before."""

import os
from pathlib import Path

from orchestrator.verify.attributes import read_attributes
from orchestrator.verify.check_entry import as_entry
from orchestrator.verify.digest import hash_maker
from orchestrator.verify.manifest import read_manifest
from tests.whole.house import House, Ran

OLD_ENOUGH = 3.2  # seconds: what is younger is looked at again in any case


def told(point: Path) -> dict[bytes, tuple[object, ...]]:
    """Return what the manifest says, without numbers of names, which only the run that made a line has seen."""
    _, entries = read_manifest(f"{point}.manifest.gz")
    found: dict[bytes, tuple[object, ...]] = {}
    for each in entries:
        found[each.path] = (*each[1:7], each.inode, *each[9:])
    return found


def there(point: Path) -> dict[bytes, tuple[object, ...]]:
    """Return what is there, read anew."""
    found: dict[bytes, tuple[object, ...]] = {}
    for path in (point, *point.rglob("*")):
        seen = path.lstat()
        name = os.fsencode(path)[len(os.fsencode(point)) + 1 :]
        link = os.fsencode(os.readlink(path)) if path.is_symlink() else b""
        entry = as_entry(name, seen, link, read_attributes(os.fsencode(path)))
        if entry.kind == "f":
            entry = entry._replace(digest=f"xxh128:{hash_maker('xxh128')(path.read_bytes()).hexdigest()}")
        found[name] = (*entry[1:7], entry.inode, *entry[9:])
    return found


def run(house: House) -> Ran:
    ran = house.run("photos", "--verbose")
    assert (ran.code, ran["warnings"]) == (0, []), ran
    return ran


def carried(ran: Ran) -> bool:
    """Return True where no attributes of the whole source were read."""
    return "list-source.sh" not in ran.errors and "list-attributes.sh" not in ran.errors

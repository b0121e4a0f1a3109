"""Surveys of a copy and of its destination: the same as for a run, and all properties of both."""

import json
from collections.abc import Iterable

from orchestrator.domain.dataset_restore import Wished
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.contract import Asked
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import At
from orchestrator.engines.zfs.model import World
from orchestrator.engines.zfs.restore import pool_root as rooting
from orchestrator.engines.zfs.restore import uid_map as owners
from orchestrator.engines.zfs.restore.model import Seen, Value
from orchestrator.engines.zfs.restore.plan import cursors_of, is_homeward, returning, up_to
from orchestrator.engines.zfs.survey.parse import Unreadable, outside
from orchestrator.engines.zfs.survey.survey import run, side_by_side, survey, understood
from orchestrator.engines.zfs.verify.checksum import Able, able_command, parse_able
from orchestrator.process.executor import Reader

# Argument: the root. Nothing of a root that is not there; then who is mounted where. `all` does not tell the salt. zfs tells each
# mountpoint below the folder that the pool was imported for, received ones too: a disk's own folder is none of the source's.
_PROPERTIES = r"""
printf "=properties\n"; exec 3>&1
e=$(zfs get -Hp -r -t filesystem,volume -o name,property,value,received,source all "$1" 2>&1 >&3) || case $e in
*"does not exist"*|*"no such pool"*) ;; *) printf "%s\n" "$e" >&2; exit 1;;
esac
zfs get -Hp -r -t filesystem,volume -o name,property,value,received,source pbkdf2salt "$1" 2>/dev/null
printf "=altroot\n"; zpool get -H -o value altroot "${1%%/*}" 2>/dev/null
printf "=mounts\n"; cut -d " " -f 1,2 /proc/self/mounts
printf "=occupied\n"
full() { [ -d "$1" ] && ! mountpoint -q -- "$1" && [ -n "$(find "$1" -xdev ! -type d -print -quit 2>/dev/null)" ]; }
zfs list -H -o mountpoint -r -t filesystem "$1" 2>/dev/null | sort -u | while IFS= read -r m; do
case $m in /*) full "$m" && printf "%s\n" "$m";; esac
done
printf "=end\n"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one side's datasets are: properties by dataset below the root, and mounted datasets by mountpoint.

    `occupied`: mountpoints of them at which nothing is mounted, but files lie that a mount would hide.
    """

    properties: dict[str, dict[str, Value]]
    mounts: dict[str, str]
    occupied: frozenset[str] = frozenset()


def look(job: Job, wished: Wished, asked: Asked, reader: Reader, *, content: bool) -> Seen:
    """Return everything that a restore needs to know. Raises: OrchestratorError."""
    back = returning(job, wished)
    world = replace(survey(back, asked, reader, whole=True), returning=job.target.location.path)
    world, bare = up_to(world, wished.until)
    source, target = world.source.root, world.target.root
    copied, home = side_by_side(lambda: _properties(source, reader), lambda: _properties(target, reader))
    return Seen(
        job=back, world=world, homeward=is_homeward(job, wished), copied=copied.properties, home=home.properties,
        mounts=home.mounts, occupied=home.occupied, bare=bare,
        able=(_able(source, reader), _able(target, reader)) if content else None, cursors=cursors_of(job, wished),
        inside=_inside(world, reader),
    )  # fmt: skip


def survey_owners(kit: str, to: Location, reader: Reader) -> tuple[str, ...]:
    """Return the accounts whose numbers at the destination differ; a kit without accounts needs no survey.

    Raises: OrchestratorError.
    """
    then = json.loads(kit)
    if not then.get("users") and not then.get("groups"):
        return ()
    return owners.warnings(then, owners.parse_people(run(reader, owners.people_command(to.host)).stdout))


def _inside(world: World, reader: Reader) -> tuple[str, ...] | None:
    if not rooting.is_to_look_into(world):
        return None
    return rooting.parse_inside(run(reader, rooting.inside_command(world.target)).stdout)


def _able(root: Location, reader: Reader) -> Able:
    return parse_able(run(reader, able_command(root)).stdout.splitlines(), root)


def _properties(root: Location, reader: Reader) -> Told:
    command = properties_command(root)
    result = run(reader, command)
    return understood(command, result, lambda: parse_properties(result.stdout.split(b"\n"), root))


def properties_command(root: Location) -> Command:
    """Build the command that prints all properties of a root and of all below it, and all mounts."""
    return commands.script(_PROPERTIES, root.path, effect=Effect.READS, where=At(host=root.host))


def parse_properties(lines: Iterable[bytes], root: Location) -> Told:
    """Parse properties by dataset below the root, and mounted datasets by mountpoint. Raises: ValueError.

    Of a value of several lines, which only a property of a user's own may have, the first one is told.
    """
    told: dict[str, dict[str, Value]] = {}
    mounts: dict[str, str] = {}
    occupied: set[str] = set()
    part = altroot = ""
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        if text in ("=properties", "=altroot", "=mounts", "=occupied", "=end"):
            part = text
        elif part == "=properties":
            fields = text.split("\t")
            if len(fields) == 5 and f"{fields[0]}/".startswith(f"{root.path}/"):
                told.setdefault(fields[0][len(root.path) + 1 :], {})[fields[1]] = _value(*fields[2:])
        elif part == "=altroot":
            altroot = text
        elif part == "=mounts" and text:
            what, _, where = text.partition(" ")
            mounts[unescaped(where)] = unescaped(what)
        elif part == "=occupied" and text:
            occupied.add(text)
    if part != "=end":
        raise Unreadable("the properties ended too early")
    for own in told.values():
        if altroot.startswith("/") and (told_so := own.get("mountpoint")):
            received = told_so.received and outside(told_so.received, altroot)
            own["mountpoint"] = replace(told_so, received=received, outside=outside(told_so.value, altroot))
    return Told(properties=told, mounts=mounts, occupied=frozenset(occupied))


def _value(value: str, received: str, source: str) -> Value:
    return Value(value=value, received=None if received == "-" else received, source=source)


def unescaped(text: str) -> str:
    r"""Decode a field of /proc/mounts, in which blanks are written as octal escapes. Source: fstab(5)."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text

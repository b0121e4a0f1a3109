"""The abilities that a target must have to hold what a source has; what helps where it lacks one."""

import re
from collections.abc import Iterable

from orchestrator.domain.errors import TargetUnable
from orchestrator.domain.names import printable_word
from orchestrator.engines.rsync.options import RsyncOptions

UNABLE = 76  # exit code of find-unheld.sh
_FOUND = r"cannot hold ([a-z-]+): (.*)"
ELSEWHERE = (
    "copy to a target that can hold all, such as ext4, XFS, btrfs or ZFS, as its root; or to one that keeps in attributes what its user "
    "or its filesystem may not have: fake-super = true in [rsync], with a place that holds no copies yet"
)
# What try-abilities.sh can be asked to try.
ABILITIES = (
    "owners",
    "modes",
    "hard-links",
    "symlinks",
    "fifos",
    "devices",
    "acls",
    "xattrs",
    "names",
    "times",
    "fake-super",
)
# By the words of try-abilities.sh: what is lost, and the key that consents to it; without a key nothing does.
_ABILITIES = {
    "owners": ("owners and groups", "owners = false"),
    "modes": ("access modes", "modes = false"),
    "hard-links": ("several names of one file", "hard-links = false"),
    "points": ("hard links, by which a point shares unchanged files with the one before", "points = false"),
    "symlinks": ("symbolic links", ""),
    "fifos": ("FIFOs and sockets", "devices = false"),
    "devices": ("device nodes", "devices = false"),
    "acls": ("access lists", "acls = false"),
    "xattrs": ("extended attributes", "xattrs = false"),
    "fake-super": ("attributes of users (user.…), in which fake-super keeps owners, modes and kinds of entries", ""),
    "capabilities": ("capabilities and attributes of root", "xattrs = false"),
    "long-names": ("names of more than 143 bytes", ""),
    "characters": ('names with one of : ? " < > | * \\, or with a blank or dot at their end', ""),
    "bytes": ("names that are not UTF-8", ""),
    "upper-case": ("names that differ in upper and lower case only", ""),
    "any-times": ("times of change, by which the next run knows what changed", ""),
    "late-times": ("times so far in the future", ""),
    "early-times": ("times so long ago", ""),
}
_WITHOUT = (
    "write fake-super = false in [rsync], and owners, modes, devices, acls, xattrs = false as far as that may be lost; or use a "
    "target whose filesystem has attributes of users, such as ext4, XFS, Btrfs or ZFS"
)
# By the beginnings of what a comparison says: see `verify.entry.differences` and `verify.attributes`.
DIFFERENCE_KEYS = (
    ("owner", "owners = false"), ("mode", "modes = false"), ("access list", "acls = false"),
    ("extended attributes", "xattrs = false"), ("capabilities", "xattrs = false"),
)  # fmt: skip


def required_abilities(options: RsyncOptions) -> tuple[str, ...]:
    """Return the abilities that a target must have, by the words of `try-abilities.sh`."""
    if options.fake_super:
        linked = ("hard-links",) if options.hard_links or options.points else ()
        return (*linked, "names", "times", "fake-super")
    chosen = {
        "owners": options.owners, "modes": options.modes, "hard-links": options.hard_links or options.points, "symlinks": True,
        "fifos": options.devices, "devices": options.devices, "acls": options.acls, "xattrs": options.xattrs, "names": True,
        "times": True,
    }  # fmt: skip
    return tuple(ability for ability, wanted in chosen.items() if wanted)


def explain_consent(options: RsyncOptions) -> str:
    """Return what the copies of a job do not hold by its own keys, and what follows for a restore; empty: they hold all."""
    keys = {"owners": options.owners, "modes": options.modes, "acls": options.acls, "xattrs": options.xattrs}
    lost = [_ABILITIES[name] for name, carried in keys.items() if not carried]
    if not lost:
        return ""
    names = " and no ".join(what.replace(" and ", " or ") for what, _ in lost)
    owner = ", and belongs to the user who restores it" if not options.owners else ""
    return f"its copies hold no {names} ({', '.join(key for _, key in lost)}): what comes back has none of the source's{owner}"


def explain_unable(lines: Iterable[str]) -> TargetUnable:
    """Return the error for what find-unheld.sh found."""
    found = [match for line in lines if (match := re.fullmatch(_FOUND, line))]
    named = [("points" if match[2] == "points" and match[1] == "hard-links" else match[1], match[2]) for match in found]
    lacking = [(*_ABILITIES.get(ability, (ability, "")), ability, path) for ability, path in named]
    shown = [what if ability == "points" else f"{what}: {printable_word(path)}" for what, _, ability, path in lacking]
    keys = list(dict.fromkeys(key for _, key, _, _ in lacking if key))
    bare = [what for what, key, ability, _ in lacking if not key and ability not in ("any-times", "fake-super")]
    return TargetUnable(
        f"the target cannot hold what the source has: {', '.join(what for what, *_ in lacking)}; nothing was copied",
        evidence=tuple(shown), hint=_WITHOUT if "fake-super" in (each[2] for each in lacking) else _hint(keys, bare),
    )  # fmt: skip


def _hint(keys: list[str], bare: list[str]) -> str:
    """Return what helps: the keys that consent to losses, what no key consents to, or another target."""
    helps = [f"write {', '.join(keys)} in [rsync], as far as that may be lost, and run again"] if keys else []
    helps += [f"name in excludes in [rsync], or change at the source: {', '.join(bare)}"] if bare else []
    return "; or ".join(("; and ".join(helps), ELSEWHERE) if helps else (ELSEWHERE,))

r"""Look-up of a few files in manifests on a host, with one command: gunzip and grep find the lines there."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.domain.answers import split_lines
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.scripts import script_command
from orchestrator.verify.entry import ManifestEntry, escape, parse_line

_MARK = re.compile(rb"=(\d+)")
_SPECIAL = re.compile(rb"[\\.\[*^$]")  # of grep's basic patterns


def lookup_command(host: Host, manifests: Sequence[str], paths: Iterable[bytes]) -> Command:
    """Build the command that prints the lines of regular files that these manifests of a host have for the paths."""
    patterns = (b"\t" + _SPECIAL.sub(rb"\\\g<0>", escape(path)) + b"$" for path in paths)
    sought = os.fsdecode(b"\n".join(patterns))
    return script_command("verify", "look-up-lines.sh", sought, *manifests, effect=Effect.READS, host=host)


def parse_lookup(
    output: bytes, manifests: Sequence[str], paths: Iterable[bytes]
) -> Mapping[str, dict[bytes, ManifestEntry]]:
    """Return the entries of the paths, by manifest. Raises: ValueError for an output that is cut short."""
    found: dict[str, dict[bytes, ManifestEntry]] = {manifest: {} for manifest in manifests}
    wanted, lines = set(paths), split_lines(output)
    if not lines or lines[-1] != b"=end":
        raise ValueError("the lines of manifests ended too early")
    here: dict[bytes, ManifestEntry] = {}
    for line in lines[:-1]:
        if mark := _MARK.fullmatch(line):
            here = found[manifests[int(mark[1])]]
        elif not line.startswith(b"#"):
            entry = parse_line(line)
            if entry.path in wanted:
                here[entry.path] = entry
    return found


def sizes_command(tree: Location, paths: Iterable[bytes]) -> Command:
    """Build the command that prints size and time of each of these files that exists in the tree."""
    names = (os.fsdecode(path) for path in paths)
    return script_command("verify", "sizes-and-times.sh", tree.path, *names, effect=Effect.READS, host=tree.host)


def parse_sizes(output: bytes) -> dict[bytes, tuple[int, int]]:
    """Return (size, time in nanoseconds), by path."""
    found = {}
    for record in output.split(b"\0")[:-1]:
        size, time, path = record.split(b"\t", 2)
        seconds, _, rest = time.partition(b".")
        found[path.removeprefix(b"./")] = (int(size), int(seconds) * 10**9 + int(rest[:9]))
    return found

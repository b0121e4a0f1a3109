"""The disk marker: the identity of a disk, written on the disk itself, in a file or in properties of its pool."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from orchestrator.domain.answers import parse_count, parse_json, text_lines
from orchestrator.domain.plan import Command, Effect, Pipeline, single_command
from orchestrator.domain.rotation import DiskMarker

FILE = ".poolferry-disk.json"
PROPERTY = "org.poolferry:"
_LARGEST = 64 << 10  # bytes; ours has 300
_TEXTS = ("disk", "name", "set", "owner", "host")


def marker_text(marker: DiskMarker) -> str:
    """Return the marker file's content, readable for people too."""
    about = "This disk belongs to poolferry, which knows it by this file."
    return json.dumps({"about": about, "format": 1, **_words(marker)}, indent=2) + "\n"


def parse_marker(text: bytes) -> DiskMarker | None:
    """Parse the marker of a file; None when it is none."""
    try:
        found = parse_json(text)
    except ValueError:
        return None
    return _marker(found) if isinstance(found, dict) else None


def parse_properties(text: bytes) -> DiskMarker | None:
    """Parse the marker of a pool's top dataset, from `zfs get -Hp -o property,value all`; None when it is none."""
    lines = (line.partition("\t") for line in text_lines(text))
    own = {name.removeprefix(PROPERTY): value for name, _, value in lines if name.startswith(PROPERTY)}
    try:
        return _marker({**own, "generation": parse_count(own.get("generation", ""))})
    except ValueError:
        return None


def _marker(found: Mapping[str, object]) -> DiskMarker | None:
    texts = {name: found.get(name) for name in _TEXTS}
    generation = found.get("generation")
    if not isinstance(generation, int) or isinstance(generation, bool) or generation < 0:
        return None
    if not all(isinstance(text, str) and text for text in texts.values()):
        return None
    tag = found.get("authentication", "")
    if not isinstance(tag, str):
        return None
    return DiskMarker(**{name: str(text) for name, text in texts.items()}, generation=generation, authentication=tag)


def _words(marker: DiskMarker) -> dict[str, object]:
    return {name: value for name, value in asdict(marker).items() if value != ""}


def read_file_pipeline(root: str) -> Pipeline:
    """Return the command to read the marker of a mounted filesystem: a link is not followed, a pipe not waited for.

    Why a program: on a disk that hangs it can be left behind, and we go on.
    """
    first = ("iflag=nofollow,nonblock,fullblock", f"bs={_LARGEST}", "count=1", "status=none")
    return single_command("dd", f"if={root}/{FILE}", *first, effect=Effect.READS)


def write_file_pipelines(root: str, given: str) -> tuple[Pipeline, ...]:
    """Return the commands to write the marker from the local file `given`: whole or not at all, then synced.

    Whatever somebody else put there under these names is replaced, and never written through.
    """
    new = f"{root}/{FILE}.new"
    copy = Command(argv=("dd", f"of={new}", "oflag=nofollow", "conv=excl,fsync", "status=none"), effect=Effect.WRITES)
    return (
        single_command("rm", "-f", "--", new, effect=Effect.WRITES),
        Pipeline(stages=(copy,), reads=given),
        single_command("mv", "-fT", "--", new, f"{root}/{FILE}", effect=Effect.WRITES),
        single_command("sync", "-f", f"{root}/{FILE}", effect=Effect.WRITES),
    )


def read_properties_pipeline(pool: str) -> Pipeline:
    """Return the command to read the marker of an imported pool."""
    return single_command("zfs", "get", "-Hp", "-o", "property,value", "all", pool, effect=Effect.READS)


def write_properties_pipeline(pool: str, marker: DiskMarker) -> Pipeline:
    """Return the command to write the marker of an imported pool: all properties at once."""
    told = tuple(f"{PROPERTY}{name}={value}" for name, value in _words(marker).items())
    return single_command("zfs", "set", *told, pool, effect=Effect.WRITES)

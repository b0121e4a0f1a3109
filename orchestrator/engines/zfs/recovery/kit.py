"""The recovery kit of a job's source: pool, properties, names of keys, snapshots by guid, and accounts."""

import json
import posixpath
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import chain
from typing import Any

from orchestrator.domain.answers import text_lines
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.kit import KitContents
from orchestrator.domain.names import check_zfs_names
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.commands.library import library_function
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.recovery import pool_layout as layout
from orchestrator.engines.zfs.recovery import recovery_page as recovery
from orchestrator.engines.zfs.recovery.delegations import parse_delegations, user_holds
from orchestrator.engines.zfs.restore import uid_map as owners
from orchestrator.engines.zfs.survey.parse import UnreadableListing, ancestors, mountpoint_without_altroot
from orchestrator.engines.zfs.survey.survey import parse_result, run_read_command
from orchestrator.process.executor import Reader

DATASET = "poolferry-kit"
# Facts of each dataset besides its set properties.
_FACTS = frozenset("type guid origin encryption encryptionroot keyformat keylocation volsize used mountpoint".split())
_SET = ("local", "received")
# Properties of a dataset's creation or of the machine, or our own.
_NOT_CREATED = frozenset("mounted keystatus".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class KitSurvey:
    """The output of a survey, in its parts."""

    parts: Mapping[str, tuple[str, ...]]

    def rows(self, part: str, count: int) -> Iterable[list[str]]:
        """Return the lines of a part that have exactly `count` fields."""
        split = (line.split("\t") for line in self.parts.get(part, ()))
        return (fields for fields in split if len(fields) == count)


def survey_kit(job: Job, now: datetime, reader: Reader) -> KitContents:
    """Return the recovery kit of this moment. Raises: OrchestratorError."""
    command = kit_command(job.source, with_library=job.source.host is None)
    result = run_read_command(reader, command)
    return parse_result(command, result, lambda: make_kit(job, now, parse_kit_survey(result.stdout)))


def kit_command(root: Location, *, with_library: bool = False) -> Command:
    """Build the command that prints everything that a kit holds. `with_library`: on this machine, a program of ours answers what it can."""
    pool = root.path.partition("/")[0]
    return commands.script_command(
        "look-for-kit.sh",
        pool,
        root.path,
        *(ancestors(root.path) or (pool,)),
        effect=Effect.READS,
        where=CommandHost(host=root.host),
        before=commands.hold_functions() + (library_function() if with_library else ""),
        with_functions=commands.PROPERTY_FUNCTIONS,
    )


def store_pipeline(job: Job, archive: str) -> Pipeline:
    """Build the pipeline that stores an archive of the kit beside the copy, in a dataset that is never auto-mounted."""
    copy = job.target.location
    dataset = f"{copy.path.rpartition('/')[0] or copy.path}/{DATASET}"
    sudo, host = options_of(job).sudo, copy.host
    command = commands.namespace_command(
        "store-kit.sh", dataset, job.identity, effect=Effect.WRITES, host=host, sudo=sudo
    )
    return Pipeline(stages=(command,), reads=archive)


def parse_kit_survey(text: bytes) -> KitSurvey:
    """Parse the parts of the output. Raises: ValueError for incomplete output."""
    parts: dict[str, list[str]] = {}
    part = ""
    for line in text_lines(text):
        if line.startswith("="):
            part = line
            parts.setdefault(part, [])
        else:
            parts.setdefault(part, []).append(line)
    if "=end" not in parts:
        raise UnreadableListing("the look ended too early")
    return KitSurvey(parts={name: tuple(lines) for name, lines in parts.items()})


def make_kit(job: Job, now: datetime, found: KitSurvey) -> KitContents:
    """Build the kit from the output of a survey."""
    vdevs = layout.parse_config(found.parts.get("=status", ()))
    datasets = _datasets(found)
    pool = job.source.path.partition("/")[0]
    create = layout.create_pool_arguments(
        vdevs, _links(found), _pool(found), _own(datasets.get(pool, {})), _ashift(found)
    )
    above = tuple(
        (name, _own(datasets.get(name, {}))) for name in ancestors(job.source.path) if name != pool
    )  # fmt: skip
    marks = list(found.rows("=marks", 3))
    check_zfs_names(chain(datasets, (name for name, *_ in marks)))
    guids = "".join(f"{name}\t{guid}\n" for name, guid, *_ in sorted(marks) if "@" in name)
    content = {
        "format": 1, "job": job.name, "source": str(job.source), "copy": str(job.target.location), "made": now.isoformat(),
        "create": layout.show_arguments(create), "layout": [[vdev.depth, vdev.name] for vdev in vdevs], "datasets": datasets,
        "snapshots": [mark for mark in marks if "@" in mark[0]], "bookmarks": [mark for mark in marks if "#" in mark[0]],
        "above": [recovery.create_dataset_line(name, told) for name, told in above],
        "own": recovery.create_dataset_line(job.source.path, _own(datasets.get(job.source.path, {}))),
        "holds": user_holds(found.rows("=holds", 3)),
        "allowed": parse_delegations(found.parts.get("=allowed", ()), job.source.path),
        **owners.make_accounts(found.parts),
    }  # fmt: skip
    return KitContents(
        content=json.dumps(content, indent=1, sort_keys=True),
        layout=layout.show_arguments(create),
        recovery=recovery.recovery_page(job, now, content),
        guids=guids,
    )


def kit_for_place(job: Job, kit: KitContents) -> KitContents:
    """Return a kit as it is for the place of this job's copy: its page names that one, and no other disk of the set."""
    content = json.loads(kit.content) | {"copy": str(job.target.location)}
    if "create" not in content:
        return kit
    return KitContents(
        content=json.dumps(content, indent=1, sort_keys=True), layout=kit.layout, guids=kit.guids,
        recovery=recovery.recovery_page(job, datetime.fromisoformat(content["made"]), content),
    )  # fmt: skip


def _datasets(found: KitSurvey) -> dict[str, dict[str, Any]]:
    """Return by full name the properties that were set on a dataset, and the facts needed to create it again.

    Mountpoints are as stored in the pool, without the altroot of its present import.
    """
    told: dict[str, dict[str, Any]] = {}
    altroot = next((value for name, value, _ in found.rows("=pool", 3) if name == "altroot"), "-")
    for name, kind, value, received, source in found.rows("=datasets", 5):
        if source in _SET or received != "-" or kind in _FACTS:
            told.setdefault(name, {})[kind] = {"value": value, "received": received, "source": source}
    for mountpoint in (own["mountpoint"] for own in told.values() if "mountpoint" in own):
        mountpoint |= {kind: mountpoint_without_altroot(mountpoint[kind], altroot) for kind in ("value", "received")}
    return told


def _own(dataset: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the properties set on a dataset as create options; for an encryption root, its encryption too."""
    own = {
        name: told["value"] for name, told in dataset.items()
        if told["source"] in _SET and name not in _NOT_CREATED and not name.startswith("poolferry:")
    }  # fmt: skip
    if dataset.get("keyformat", {}).get("value") not in (None, "none", "-"):
        own |= {name: dataset[name]["value"] for name in ("encryption", "keyformat", "keylocation") if name in dataset}
    return own


def _pool(found: KitSurvey) -> dict[str, str]:
    return {name: value for name, value, source in found.rows("=pool", 3) if source == "local"}


def _links(found: KitSurvey) -> dict[str, str]:
    links = {
        link: posixpath.normpath(posixpath.join(posixpath.dirname(link), to)) for link, to in found.rows("=links", 2)
    }
    return links | {to: to for to in links.values()}


def _ashift(found: KitSurvey) -> int:
    """Return the largest ashift of all devices: a device created with a smaller one stays slow."""
    numbers = (line.rpartition(":")[2].strip() for line in found.parts.get("=ashift", ()))
    return max((int(number) for number in numbers if number.isdigit()), default=0)

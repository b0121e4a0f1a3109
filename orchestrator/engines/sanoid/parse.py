"""The parsers of the output of the survey and of sanoid itself → values."""

import re
from datetime import datetime

from orchestrator.domain.answers import instant_at, split_lines, text_lines
from orchestrator.domain.names import check_zfs_names
from orchestrator.domain.place import Location
from orchestrator.engines.sanoid.model import INTERVALS, PREFIX, SanoidReport, SanoidSnapshot, SanoidSurvey

_LONGEST = 4096  # characters; a snapshot's name has 255, and on a line of millions these patterns would never end
_NAME = re.compile(rf"{PREFIX}_.*_({'|'.join(INTERVALS)})")
_DATASET = re.compile(r"([^\t]+)\t(\d{1,20})\t([^\t]*)\t\1")
_VERSION = re.compile(r"sanoid version (\d+(?:\.\d+)*)")
_TAKING = re.compile(r"taking (?:dst )?snapshot (.+?@\S+)(?: \(zfs recursive\))?")
_PRUNING = re.compile(r"INFO: pruning (.+@\S+) \.\.\. ")
_DEFERRING = re.compile(r"INFO: deferring (?:pruning of (?P<name>.+@\S+) - .*|snapshot pruning.*)")
_LEFT = re.compile(r"could not remove (.+@\S+) : \d+.*")
_WHY = re.compile(r"cannot destroy (?:snapshots? )?'?(?P<name>[^']+?@[^' ]+?)'?: (?P<why>.+?)(?:\. Run .*)?")
_FAILED = re.compile(r"CRITICAL ERROR: \S+ snapshot (?:-r )?(.+@\S+) failed.*")
_MISSED = re.compile(r"not taken, as one of that name was there: (.+@\S+)")  # our script's own


def parse_survey(text: bytes, root: Location) -> SanoidSurvey:
    """Parse the source: the time, (name, guid, our mark, name) up to the empty line, then (time, snapshot) of the root.

    Raises: ValueError, also where an owner gave her mark a value of several lines: the last of them ends with a name that it does
    not begin with, or that was told before.
    """
    head, empty, snapshots = text.decode("utf-8", "surrogateescape").rpartition("\n\n")
    if not empty:
        raise ValueError("the look at the source broke off")
    clock, *listed = head.split("\n")
    told: dict[str, tuple[int, str]] = {}
    for line in listed:
        found = _DATASET.fullmatch(line)
        if found is None or found[1] in told or not f"{found[1]}/".startswith(f"{root.path}/"):
            raise ValueError(f"zfs lists no dataset so, or a mark of several lines: {line[:80]!r}")
        told[found[1]] = int(found[2]), found[3]
    check_zfs_names(told)
    if root.path not in told:
        raise ValueError(f"zfs listed no {root.path}")
    lines = (line.split("\t") for line in snapshots.split("\n") if line)
    dated = [taken for at, name in lines if (taken := _taken(name.rpartition("@")[2], at))]
    check_zfs_names(taken.name for taken in dated)
    return SanoidSurvey(
        root=root,
        at=_instant(clock),
        guid=told[root.path][0],
        datasets=tuple(told),
        snapshots=tuple(dated),
        restoring=any("b" in flags for name, (_, flags) in told.items() if name == root.path),
        unfinished=tuple(name for name, (_, flags) in told.items() if name != root.path and "b" in flags),
    )


def _taken(name: str, at: str) -> SanoidSnapshot | None:
    match = _NAME.fullmatch(name)
    return SanoidSnapshot(name=name, kind=match[1], at=_instant(at)) if match else None


def _instant(seconds: str) -> datetime:
    return instant_at(int(seconds))


def parse_space(text: bytes) -> tuple[int, int]:
    """Return the free bytes at the root, and those that all snapshots take. Raises: ValueError."""
    rows = [line.split("\t") for line in text_lines(text)]
    return int(rows[0][0]), sum(int(taken) for _, taken in rows if taken != "-")


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the version in the output of `sanoid --version`; None: there is none."""
    match = _VERSION.search(text)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def parse_output(text: str) -> SanoidReport:
    """Parse the actions of a run of sanoid --verbose from its own lines and those of zfs, in any order."""
    taken: dict[str, None] = {}
    missed: dict[str, None] = {}
    going: dict[str, None] = {}
    left: dict[str, str] = {}
    whys: dict[str, str] = {}
    deferred = False
    for line in split_lines(text):
        if len(line) > _LONGEST:
            continue
        if match := _TAKING.fullmatch(line):
            taken[match[1]] = None
        elif match := _PRUNING.fullmatch(line):
            going[match[1]] = None
        elif match := _DEFERRING.fullmatch(line):
            deferred = True
            going.pop(match["name"] or "", None)
        elif match := _LEFT.fullmatch(line):
            left[match[1]] = ""
        elif match := _FAILED.fullmatch(line):
            taken.pop(match[1], None)
        elif match := _MISSED.fullmatch(line):
            missed[match[1]] = None
        elif match := _WHY.fullmatch(line):
            whys[match["name"]] = match["why"].strip()
    return SanoidReport(
        taken=tuple(taken), missed=tuple(missed), removed=tuple(name for name in going if name not in left),
        kept=tuple((name, whys.get(name, "zfs did not say why")) for name in left), deferred=deferred,
    )  # fmt: skip

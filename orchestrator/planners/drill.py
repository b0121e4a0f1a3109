"""Restore test planning: when a test is due, which files it restores, and how long a full restore takes."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from orchestrator.domain.age import is_misdated, is_over
from orchestrator.domain.drill import DrillResult
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import DrillRules
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds

_TELLING_OUTCOMES = (Outcome.DONE, Outcome.FAILED, Outcome.REFUSED)
_SPARE = 8  # candidates of a folder beyond its fair share, as some are too large to be taken
_SURE_S = 0.5  # a shorter time measures the start of programs, not the data


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDrill:
    """One restore test of a place, and its time."""

    at: datetime
    drilled: DrillResult


def decide_drill(rules: DrillRules, past: Sequence[PastDrill], now: datetime) -> str:
    """Return "whole", "sample", or "" when no restore test is due. `past`: the tests of this place, the newest first.

    A test that failed or was refused is repeated after each run, until one ends well.
    """
    if not rules.requested:
        return ""
    told = [each for each in past if each.drilled.outcome in _TELLING_OUTCOMES and not each.drilled.self_test]
    if told and told[0].drilled.outcome is not Outcome.DONE:
        return "whole" if told[0].drilled.whole else "sample"
    well = [each for each in told if each.drilled.outcome is Outcome.DONE]
    if rules.whole_every is not None and _older([each for each in well if each.drilled.whole], rules.whole_every, now):
        return "whole"
    return "sample" if rules.every is not None and _older(well, rules.every, now) else ""


def _older(past: Sequence[PastDrill], limit: Seconds, now: datetime) -> bool:
    known = [each.at for each in past if not is_misdated(each.at, now)]
    return is_over(max(known, default=None), limit, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFile:
    """A file that a sample may include."""

    path: bytes
    size: int


def choose_sample(pieces: Iterable[SampleFile], *, files: int, size: int, seed: int) -> tuple[SampleFile, ...]:
    """Choose sample files folder by folder, in an order that only the seed decides; at least one if there is any.

    Folders take turns, so that a large one does not hide the others. A file that no longer fits into `size` is skipped.
    """
    key = seed.to_bytes(8, "big")
    folders: dict[bytes, list[tuple[bytes, SampleFile]]] = {}
    least: SampleFile | None = None
    for piece in pieces:
        least = piece if least is None or piece.size < least.size else least
        held = folders.setdefault(piece.path.rpartition(b"/")[0], [])
        held.append((_draw(key, piece.path), piece))
        if len(held) > 2 * (files // len(folders) + _SPARE):
            held.sort(key=_drawn)
            del held[files // len(folders) + _SPARE :]
    turns = [sorted(folders[folder], key=_drawn) for folder in sorted(folders, key=lambda each: _draw(key, each))]
    taken = _by_turns(turns, files, size)
    return tuple(taken or ([least] if least else []))


def _by_turns(turns: Sequence[Sequence[tuple[bytes, SampleFile]]], files: int, size: int) -> list[SampleFile]:
    taken: list[SampleFile] = []
    left = size
    for turn in range(max(map(len, turns), default=0)):
        for held in turns:
            if len(taken) == files:
                return taken
            if turn < len(held) and held[turn][1].size <= left:
                taken.append(held[turn][1])
                left -= held[turn][1].size
    return taken


def _draw(key: bytes, path: bytes) -> bytes:
    from hashlib import blake2b  # 2 ms, and `status` only asks when a test is due

    return blake2b(path, digest_size=8, key=key).digest()


def _drawn(entry: tuple[bytes, SampleFile]) -> bytes:
    return entry[0]


def estimate_whole(drilled: DrillResult) -> Seconds | None:
    """Estimate the time of a full restore from the speed of this one; None when too little was restored."""
    took, files, whole = drilled.restore_s, drilled.of_files, drilled.of_bytes
    if not took or took < _SURE_S or not drilled.files or not files or whole is None:
        return None
    by_files = took * files / drilled.files
    by_bytes = took * whole / drilled.bytes if drilled.bytes else 0.0
    return Seconds(max(by_files, by_bytes)) if drilled.bytes < whole else Seconds(took)

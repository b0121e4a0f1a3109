"""Measurements as rows: pairs timed in turns, their ratios, the table, the JSON."""

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Deed = Callable[[], object]
HEAD = ("", "what", "measured (least to most)", "promised", "kept", "how")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. `most`: what is promised; None: shown beside the promise. No values: `note` says why."""

    part: str
    what: str
    values: tuple[float, ...]
    most: float | None
    unit: str = ""  # none: a ratio of times
    note: str = ""

    @property
    def middle(self) -> float | None:
        """The median."""
        return statistics.median(self.values) if self.values else None

    @property
    def met(self) -> bool | None:
        """Return whether the promise is kept; None: nothing was promised, or nothing measured."""
        return None if self.middle is None or self.most is None else self.middle <= self.most

    @property
    def value(self) -> dict[str, Any]:
        """The row for JSON."""
        return {
            "part": self.part, "what": self.what, "unit": self.unit or "ratio", "median": self.middle, "least": min(self.values, default=None),
            "most": max(self.values, default=None), "target": self.most, "met": self.met, "measured": len(self.values), "note": self.note,
        }  # fmt: skip


def timed(action: Deed) -> float:
    """Return how long it took, in seconds."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def worked() -> float:
    """Return the processor time of all programs that ended below this one, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def both_clocks(action: Deed) -> tuple[float, float]:
    """Return how long an action took, and the processor time of the programs that it ran, in seconds."""
    before = worked()
    seconds = timed(action)
    return seconds, worked() - before


def pairs(ours: Deed, theirs: Deed, *, rounds: int, before: Deed) -> tuple[list[float], list[float]]:
    """Seconds of both, in turns: each pair back to back, every second one the other way round. `before`: each deed."""
    took: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            before()
            took[which].append(timed((ours, theirs)[which]))
    return took


def ratios(
    part: str, what: str, took: tuple[Sequence[float], Sequence[float]], *, most: float | None, note: str
) -> Row:
    """The row of a pair: ours over theirs, pair by pair, with the seconds of both in the note."""
    ours, theirs = took
    seconds = f"{statistics.median(ours):.2f} s : {statistics.median(theirs):.2f} s"
    values = tuple(one / other for one, other in zip(ours, theirs, strict=True))
    return Row(part=part, what=what, values=values, most=most, note=f"{seconds}; {note}" if note else seconds)


def twice(
    part: str,
    what: str,
    took: tuple[Sequence[tuple[float, float]], Sequence[tuple[float, float]]],
    *,
    most: float | None,
    note: str,
) -> Iterator[Row]:
    """Yield two rows of a pair: by the clock, which the promise is about, and by the processor, which other work does not change."""
    for column, (unit, limit) in enumerate((("", most), (": processor time", None))):
        pair = [each[column] for each in took[0]], [each[column] for each in took[1]]
        yield ratios(part, what + unit, pair, most=limit, note=note)


def left_out(part: str, what: str, why: str) -> Row:
    """A row without numbers."""
    return Row(part=part, what=what, values=(), most=None, note=why)


def call(argv: Sequence[str], **how: Any) -> None:
    """Runs a program, its output thrown away. Raises: RuntimeError with its last words when it fails."""
    done = subprocess.run(
        list(argv), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **how
    )
    if done.returncode:
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [HEAD, ("---",) * len(HEAD), *(_cells(row) for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _cells(row: Row) -> tuple[str, ...]:
    if row.middle is None:
        return (row.part, row.what, "not measured", "", "", row.note)
    spread = (
        f" ({_shown(min(row.values), row.unit)} to {_shown(max(row.values), row.unit)})" if len(row.values) > 1 else ""
    )
    kept = {True: "yes", False: "**no**", None: ""}[row.met]
    most = "" if row.most is None else f"≤ {_shown(row.most, row.unit)}"
    return (row.part, row.what, _shown(row.middle, row.unit) + spread, most, kept, row.note)


def _shown(value: float, unit: str) -> str:
    return f"{value:.0f} {unit}" if unit else f"{value:.2f}"

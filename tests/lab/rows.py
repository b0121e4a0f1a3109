"""Tables of what a run finds and what it must do: each row is made on real pools, run, and judged by what history tells.

The runner, the engine and the history are the real ones and work here; every command of theirs runs in the machine, so that no
Python starts under emulation. Rows that ask for the same run share it: each is a dataset below tank/rows then, with a lane and
reasons of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from orchestrator import compose
from orchestrator.runner.run import run_job
from orchestrator.views.run_history import run_details_value
from tests.lab.common import ENCRYPTED, Machine
from tests.lab.guest_writer import GuestWriter
from tests.lab.kits import keep_kit

PLACES = {"vault": "vault/copies", "second": "second/copies"}
TOGETHER = "tank/rows"
DONE, NOTHING, REFUSED, FAILED, WAITING = "done", "nothing-to-do", "refused", "failed", "waiting"
# For the scripts of rows; $s is the source's dataset, $c its copy.
PRELUDE = """set -e
grow() { head -c 1M /dev/urandom >"/$1/$2"; zfs snapshot "$1@$2"; }
take() { zfs receive -u -o readonly=on -o canmount=noauto -o poolferry:flags=Lce "$c"; }
begin() { zfs create "$s"; grow "$s" one; zfs send -Lce "$s@one" | take; }
cut() { zfs send -Lce "$@" | head -c 600000 | zfs receive -s -u -o poolferry:flags=Lce "$c" 2>/dev/null || :; }
cut_more() { zfs send -Lce "$@" | head -c 600000 | zfs receive -s -u "$c" 2>/dev/null || :; }
key() { ENCRYPTED "$@"; }
""".replace("ENCRYPTED", ENCRYPTED)
_JOB = """engine = "zfs"
source = "{source}"
target = "{place}"
schedule = "manual"
[retry]
attempts = 3
wait = "1s"
wait-at-most = "1s"
[zfs]
{options}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Something happens, then a run.

    `says`: patterns; each must be found in what history tells of the run. `sends`: its sends, as they are told, without the
    word. `options`: of [zfs], from this turn on. `loses`: snapshots of the copy may die. `newest`: the copy's newest is the
    source's then.
    """

    action: str = ":"
    outcome: str = DONE
    says: tuple[str, ...] = ()
    sends: tuple[str, ...] | None = None
    options: str | None = None
    allow: frozenset[str] = frozenset()
    resumed: bool = False
    attempts: int = 1
    loses: bool = False
    newest: bool = True
    source: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Fate of one dataset, turn by turn. `alone`: it has a job of its own, from tank/NAME if no source is told."""

    name: str
    turns: tuple[Turn, ...]
    alone: bool = False
    source: str = ""
    place: str = "vault"
    options: str = ""

    def at(self, place: int) -> Turn:
        """A turn, with what earlier ones and the row itself say for it."""
        earlier = [turn.options for turn in self.turns[: place + 1] if turn.options is not None]
        turn = self.turns[place]
        usual = f"tank/{self.name}" if self.alone else f"{TOGETHER}/{self.name}"
        return replace(
            turn, options=earlier[-1] if earlier else self.options, place=turn.place or self.place,
            source=turn.source or self.source or usual,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRecord:
    """Record of one row in a run's history."""

    outcome: str
    attempts: int
    resumed: bool
    sends: list[str]
    reasons: list[str]


@dataclass
class Table:
    """Rows on one machine, with a configuration and a history of their own."""

    machine: Machine
    folder: Path
    places: Mapping[str, str] = field(default_factory=lambda: PLACES)
    user: str = ""
    ssh_options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.where = compose.Directories(config=str(self.folder / "config"), state=str(self.folder / "state"))
        (self.folder / "config/jobs").mkdir(parents=True)
        (self.folder / "state").mkdir()
        places = (f'[place.{name}]\ndataset = "{dataset}"\n' for name, dataset in self.places.items())
        (self.folder / "config/targets.toml").write_text("".join(places))

    def play(self, rows: Sequence[Row]) -> None:
        """All rows turn by turn: what happens, for all of them at once; then their runs. Raises: AssertionError."""
        wrong: dict[str, list[str]] = {}
        if not all(row.alone for row in rows):
            self.machine.sh(f"zfs create {TOGETHER}; zfs create {self.places['vault']}/rows")
        for place in range(max(len(row.turns) for row in rows)):
            going = [(row, row.at(place)) for row in rows if place < len(row.turns)]
            scripts = (self._said(turn, "s=$s; c=$c\n" + turn.action) for _, turn in going)
            self.machine.sh(PRELUDE + "\n".join(scripts), seconds=600)
            before = self.snapshots()
            told = [one for group in _groups(going) for one in self._run_group(group, rows)]
            after = self.snapshots()
            for row, turn, heard in told:
                if bad := [*self._judged(turn, heard), *self._held(turn, before, after)]:
                    wrong[f"{row.name}, turn {place + 1}"] = [*bad, *heard.reasons]
        assert "poolferry-kit" not in self.machine.sh("zfs list -H -o name").text
        assert not wrong, "\n".join(f"{row}:\n  " + "\n  ".join(bad) for row, bad in wrong.items())

    def run(self, name: str, turn: Turn) -> Mapping[str, Any]:
        """One run of a job, and what history knows of it."""
        text = _JOB.format(source=turn.source, place=turn.place, options=turn.options)
        (self.folder / f"config/jobs/{name}.toml").write_text(text)
        job, stop = compose.read_configuration(self.where).job(name), compose.make_stop_request(None)
        with compose.open_history(self.where) as history:
            if history.recall(name, f"kit at {turn.place}") is None:
                keep_kit(history, name, [turn.place])  # no row is about kits
            tools = compose.make_run_context(
                job, self.where, history, notify=_ignored, log=_ignored, stop=stop, ssh_options=()
            )
            hands = GuestWriter(self.machine, user=self.user, ssh_options=self.ssh_options)
            report = run_job(job, replace(tools, writer=lambda _: hands), why="a row", allowed=turn.allow)
        with compose.open_history_reader(self.where) as views:
            story = views.run(report.run)
        assert story is not None
        return run_details_value(story)

    def snapshots(self) -> dict[str, list[str]]:
        """By dataset, "name guid" of its snapshots, the oldest first."""
        found: dict[str, list[str]] = {}
        listing = "zfs list -Hp -t snapshot -s createtxg -o name,guid"
        for line in self.machine.sh(listing).lines:
            dataset, _, mark = line.partition("@")
            found.setdefault(dataset, []).append(mark.replace("\t", " "))
        return found

    def copy(self, turn: Turn) -> str:
        """Return where a turn's copy lies."""
        together = "rows/" if turn.source.startswith(f"{TOGETHER}/") else ""
        return f"{self.places[turn.place]}/{together}{turn.source.rpartition('/')[2]}"

    def _run_group(
        self, group: Sequence[tuple[Row, Turn]], rows: Sequence[Row]
    ) -> Iterator[tuple[Row, Turn, RowRecord]]:
        """One run for all of a group, and what it tells of each."""
        (row, turn), *_ = group
        if row.alone:
            yield row, turn, told_alone(self.run(row.name, turn))
            return
        here = {row.name for row, _ in group}
        others = ", ".join(f'"{one.name}"' for one in rows if not one.alone and one.name not in here)
        story = self.run("rows", replace(turn, source=TOGETHER, options=f"{turn.options}\nexclude = [{others}]"))
        for row, turn in group:
            yield row, turn, told_of(story, turn.source, self.copy(turn))

    def _said(self, turn: Turn, text: str) -> str:
        """A text with the names of both datasets in it."""
        source, copy = turn.source, self.copy(turn)
        return re.sub(r"\$([sc])(?![a-z])", lambda found: source if found[1] == "s" else copy, text)

    def _judged(self, turn: Turn, told: RowRecord) -> Iterable[str]:
        """Return what is not as the turn says."""
        for key in ("outcome", "attempts", "resumed"):
            if getattr(told, key) != getattr(turn, key):
                yield f"{key} is {getattr(told, key)}, not {getattr(turn, key)}"
        for pattern in turn.says:
            if not re.search(self._said(turn, pattern), "\n".join(told.reasons)):
                yield f"not told: {self._said(turn, pattern)}"
        if turn.sends is not None and told.sends != [self._said(turn, send) for send in turn.sends]:
            yield f"it sent {told.sends}"

    def _held(
        self, turn: Turn, before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]
    ) -> Iterable[str]:
        """Return what is lost, or not there."""
        source, copy = turn.source, self.copy(turn)
        left = {mark for marks in after.values() for mark in marks}
        for dataset, marks in before.items():
            if f"{dataset}/".startswith((f"{copy}/", f"{source}/")) and not turn.loses and set(marks) - left:
                yield f"{dataset} has lost {set(marks) - left}"
        if turn.newest and turn.outcome in (DONE, NOTHING):
            here, there = (after.get(dataset, ["nothing"])[-1].rpartition(" ")[2] for dataset in (source, copy))
            if here != there:
                yield f"the newest of {source} is {here}, of {copy} {there}"


def _groups(going: Iterable[tuple[Row, Turn]]) -> Iterator[list[tuple[Row, Turn]]]:
    """Those that one run can do."""

    def run_of(one: tuple[Row, Turn]) -> str:
        row, turn = one
        return row.name if row.alone else f"/{turn.options} {sorted(turn.allow)}"

    return (list(group) for _, group in groupby(sorted(going, key=run_of), key=run_of))


def told_alone(story: Mapping[str, Any]) -> RowRecord:
    """A run that is one row's."""
    steps = _steps(story)
    errors = [attempt["why"] for attempt in story["attempt"] if attempt["why"]]
    return RowRecord(
        outcome=story["outcome"], attempts=story["attempts"], resumed=story["resumed"], sends=_sends(steps),
        reasons=[story["why"], story["hint"], *story["evidence"], *story["warnings"], *errors, *map(_reason, steps)],
    )  # fmt: skip


def told_of(story: Mapping[str, Any], *names: str) -> RowRecord:
    """Return what a run of several rows tells of one, by the names of its datasets."""
    ours = re.compile("|".join(rf"{re.escape(name)}(?![\w-])" for name in names))
    steps = [step for step in _steps(story) if ours.search(step["action"])]
    refused = [text for refusal in _refusals(story) if ours.search(text := "\n".join(refusal))]
    sends = _sends(steps)
    outcome = REFUSED if refused else story["outcome"] if story["outcome"] != FAILED else DONE
    if any(step["error"] for step in steps) or (story["outcome"] == FAILED and not _refusals(story)):
        outcome = FAILED
    return RowRecord(
        outcome=outcome, attempts=story["attempts"], resumed=any(send.endswith("the rest") for send in sends), sends=sends,
        reasons=[*refused, *filter(ours.search, story["warnings"]), *map(_reason, steps)],
    )  # fmt: skip


def _refusals(story: Mapping[str, Any]) -> list[list[str]]:
    """Of the last attempt: each refusal with its evidence and its cure."""
    decision = story["attempt"][-1]["decision"]
    if decision["decision"] != REFUSED:
        return [[one["why"], *one["evidence"], one["hint"]] for one in decision.get("refusals", ())]
    several = decision["evidence"] and decision["why"].startswith(decision["evidence"][0])
    if not several:
        return [[decision["why"], *decision["evidence"], decision["hint"]]]
    found: list[list[str]] = []
    for line in decision["evidence"]:
        if line.startswith("  "):
            found[-1].append(line.strip())
        else:
            found.append([line])
    return found


def _ignored(*_: object) -> None:
    """Nobody watches."""


def _steps(story: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [step for attempt in story["attempt"] for step in attempt["steps"]]


def _sends(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    return [step["action"].removeprefix("send ") for step in steps if step["action"].startswith("send ")]


def _reason(step: Mapping[str, Any]) -> str:
    return f"{step['action']}: {step['why']}" + (f"; {step['error']}" if step["error"] else "")

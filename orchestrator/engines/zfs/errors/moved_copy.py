"""The refusals of a place whose pool is away, and of a copy that lies elsewhere now, with the lines and commands by which it goes on."""

import json

from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.gate import ABSENT_OF_GATE
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.problem import SAME_COMMAND
from orchestrator.domain.renamed_dataset import NOT_RENAMED, RenamedDataset, give_name_back
from orchestrator.engines.zfs.options import options_of


def absent_pool(job: Job, target: Location, found: RenamedDataset = NOT_RENAMED) -> Refusal:
    """Return the refusal of a place whose pool is not there: it is away, or has another name now. `found`: where its copy lies."""
    pool = target.path.partition("/")[0]
    why = f"the pool {pool} of the target {target} is not imported"
    if found.name:
        back = give_name_back(target.path, found, target.host, sudo=options_of(job).sudo)
        return Refusal(
            why=f"{why}, and the copy is {found.name} now, by its guid",
            evidence=(),
            hint=f"to go on there: {_lines(job, target, found)}; or give the pool its name back: {back}; then {SAME_COMMAND}",
        )
    on = f" on {target.host.name}" if target.host else ""
    hint = (
        f"`zpool import {quoted(pool)}`{on}, or correct the dataset of its place in targets.toml; then {SAME_COMMAND}"
    )
    return Refusal(why=why, evidence=(found.doubt,) if found.doubt else (), hint=hint)


def explain_moved_copy(job: Job, found: RenamedDataset) -> Refusal | None:
    """Return the refusal of a place whose copy lies elsewhere now; None: it was found nowhere."""
    if not found.name:
        return None
    target = job.target.location
    return refuse_moved_copy(job, target, found) if found.above else absent_pool(job, target, found)


def refuse_moved_copy(job: Job, target: Location, found: RenamedDataset, *, sends: bool = False) -> Refusal:
    """Return the refusal of a copy that has another name now. `sends`: of a run, by which all of it would be sent again."""
    if job.target.disk:
        return _refuse_on_disk(job, target, found, sends=sends)
    ways = [f"to go on there: {_lines(job, target, found)}"]
    if found.name.partition("/")[0] == target.path.partition("/")[0]:
        back = give_name_back(target.path, found, target.host, sudo=options_of(job).sudo)
        ways.append(f"to give the former name back: {back}")
    return Refusal(
        why=f"the copy {target} is called {found.name} now, by its guid",
        evidence=(),
        hint=f"{'; or '.join(ways)}; then {SAME_COMMAND}{_anew(job) if sends else ''}",
    )


def _anew(job: Job) -> str:
    return f"; to send all of it again, beside that one: poolferry run {job.name} --aside"


def _refuse_on_disk(job: Job, target: Location, found: RenamedDataset, *, sends: bool) -> Refusal:
    """Return the refusal of a copy on a disk, whose pool is not imported any more once its visit has ended.

    Why the rename makes what lies above: whoever attaches the disk finds, or makes, the dataset of the job's copies there.
    """
    back = give_name_back(target.path, replace(found, above=""), None)
    disk = quoted(job.target.disk)
    return Refusal(
        why=f"the copy {target} is called {found.name} now, by its guid",
        evidence=(),
        hint=f"to give the former name back: poolferry disks attach {disk} && {back} && poolferry disks eject {disk}; then {SAME_COMMAND}"
        f"{_anew(job) if sends else ''}",
    )


def refuse_absent_gate_dataset(target: Location, within: str) -> Refusal:
    """Return the refusal of a copy behind a gate whose own dataset is not there. `within`: that dataset."""
    return Refusal(
        why=f"{within}, below which the gate of our key receives, is not there",
        evidence=(f"{target} was there at the last run",),
        hint=f"{ABSENT_OF_GATE}; then {SAME_COMMAND}",
    )


def _lines(job: Job, target: Location, found: RenamedDataset) -> str:
    """Return the lines of targets.toml and of the job file by which a copy is looked for where it lies now."""
    (place, _, name), (above, _, last) = found.name.rpartition("/"), target.path.rpartition("/")
    told: list[str] = []
    if place != above:
        named = str(Location(path=place, host=target.host))
        told.append(f"write dataset = {json.dumps(named)} into [place.{job.target.name}] of targets.toml")
    if name != last:
        told.append(f"write name = {json.dumps(name)} into [zfs] of {job.file}")
    return ", and ".join(told)

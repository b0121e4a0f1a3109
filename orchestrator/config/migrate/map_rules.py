"""Placement of sanoid's rules: into the job that copies the dataset if it runs often enough, else into a job of their own."""

from collections.abc import Mapping

from orchestrator.config.migrate.job_text import JobText, Value
from orchestrator.config.migrate.result import ImportBuilder, Lost
from orchestrator.config.migrate.sanoid_conf import INTERVALS, SanoidPolicy
from orchestrator.config.migrate.syncoid import SyncoidCall
from orchestrator.domain.place import Location

_QUARTERS = ("*", "*/15", "*/10", "*/5", "0,15,30,45")
_OFTEN = {"frequently": "*/15 * * * *", "hourly": "0 * * * *"}
_DAILY = "0 0 * * *"


def source_rules(work: ImportBuilder, told: SyncoidCall, schedule: str | None) -> SanoidPolicy | None:
    """Return the rules for a replication's own source that can become its [snapshots]; None when there are none."""
    policy = None if told.source.host else work.policies.get(told.source.path)
    if policy is None or policy.unlike or policy.inside or not policy.autosnap or not policy.kinds:
        return None
    if work.clash(policy.dataset):
        return None
    excepted = any(each.inside == policy.dataset for each in work.policies.values())
    if excepted or policy.below != told.has("recursive") or not _often_enough(policy.kinds[0], schedule):
        return None
    return policy


def has_snapshots_elsewhere(work: ImportBuilder, told: SyncoidCall) -> bool:
    """Return True when sanoid's rules on this machine make snapshots of the source, in any job."""
    path = told.source.path
    return not told.source.host and any(
        each.autosnap and each.kinds and (each.dataset == path or (each.below and path.startswith(f"{each.dataset}/")))
        for each in work.policies.values()
    )


def copy_rules(work: ImportBuilder, told: SyncoidCall) -> SanoidPolicy | None:
    """Return the rules by which sanoid prunes the copy on this machine, as its [keep]; None when there are none."""
    policy = None if told.target.host else work.policies.get(told.target.path)
    if policy is None or policy.autosnap or not policy.autoprune or not set(policy.kinds) - {"frequently"}:
        return None
    return policy


def snapshots_section(policy: SanoidPolicy) -> Mapping[str, Value]:
    """Return the rules as [snapshots]."""
    section = keep_numbers(policy)
    words = (("recursive", policy.below), ("autosnap", policy.autosnap), ("autoprune", policy.autoprune))
    return section | {name: False for name, yes in words if not yes}


def keep_numbers(policy: SanoidPolicy, *, without: tuple[str, ...] = ()) -> dict[str, Value]:
    """Return how many snapshots of each kind are kept."""
    return {kind: policy.numbers[kind] for kind in INTERVALS if policy.numbers[kind] and kind not in without}


def import_policy(work: ImportBuilder, policy: SanoidPolicy) -> None:
    """Make a job of the engine sanoid from rules that no other job has taken."""
    where = work.at(policy)
    if policy.dataset in work.used:
        return
    if not policy.kinds or not (policy.autosnap or policy.autoprune):
        work.say(where, f"became nothing: sanoid takes and removes no snapshots of {policy.dataset} by it")
        return
    if other := work.clash(policy.dataset):
        work.say(
            where,
            Lost(
                f"is not carried over: the job {other} has rules around it; leave [{policy.dataset}] to sanoid itself"
            ),
        )
        return
    name = work.name(Location(path=policy.dataset), "-snapshots")
    work.ruled[policy.dataset] = name
    head: dict[str, Value] = {
        "engine": "sanoid", "source": policy.dataset, "schedule": _OFTEN.get(policy.kinds[0], _DAILY),
    }  # fmt: skip
    inside = [each.dataset for each in work.policies.values() if each.inside == policy.dataset]
    left = tuple(dataset.removeprefix(f"{policy.dataset}/") for dataset in inside)
    sections: dict[str, Mapping[str, Value]] = {"": head, "snapshots": snapshots_section(policy)}
    if left:
        sections["sanoid"] = {"exclude": left}
    notes: list[str] = [Lost(f"{key} is not carried over: no equivalent in poolferry") for key in policy.unlike]
    notes += [f"what lies below {dataset} is left out with it" for dataset in inside]
    work.add(where, JobText(name=name, origin=where, sections=sections), notes)


def _often_enough(kind: str, schedule: str | None) -> bool:
    """Return True when a job with this schedule runs in every quarter, hour or day that needs a snapshot."""
    minute, hour, *days = (schedule or "- - - - -").split()
    if days != ["*", "*", "*"]:
        return False
    if kind == "frequently":
        return hour == "*" and minute in _QUARTERS
    return kind != "hourly" or hour == "*"

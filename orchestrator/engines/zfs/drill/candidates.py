"""The snapshots of a copy that a restore test uses, each with its reference: the source, a record, or the copy itself."""

from collections.abc import Iterator, Mapping

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import Dataset, DatasetType, Snapshot
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.recovery.kit_diff import parse_kit_content
from orchestrator.engines.zfs.verify import compare as comparing


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillCandidate:
    """A dataset of the copy with the snapshot to test. `source`: the same one there; None: the source no longer has it.

    `away`: why the source could not be surveyed.
    """

    dataset: str
    target: Snapshot
    source: Snapshot | None
    there: Dataset
    here: Dataset | None
    away: str = ""

    @property
    def volume(self) -> bool:
        """Return whether the dataset is a volume, which has no files."""
        return self.there.kind is DatasetType.VOLUME

    @property
    def locked(self) -> bool:
        """Return whether the dataset is encrypted and its key is not loaded."""
        return self.there.encrypted and not self.there.key_loaded

    @property
    def alone(self) -> str:
        """Return why its files cannot be compared with the source's; empty: they can."""
        if self.away:
            return self.away
        if self.source is None or self.here is None:
            return "the source has the snapshot no more"
        return "the source's key is not loaded" if self.here.encrypted and not self.here.key_loaded else ""


def find_drill_candidates(case: PlanContext, away: str = "") -> tuple[DrillCandidate, ...] | Refusal:
    """Return per dataset of the copy the newest snapshot on both sides, else its newest. Refuses: there is none.

    `away`: why the source could not be surveyed.
    """
    found = tuple(_each(case, away))
    if found:
        return found
    judged = None if away else comparing.compare_guids(case, point=None)
    if isinstance(judged, Refusal):
        return judged
    why = f"{case.world.target.root} holds no snapshot"
    return Refusal(why=why, evidence=(), hint=f"poolferry run {case.job.name}")


def _each(case: PlanContext, away: str) -> Iterator[DrillCandidate]:
    source = case.world.source.datasets
    for name, there in sorted(case.world.target.datasets.items()):
        if there.newest is None:
            continue
        common = comparing.newest_common_snapshot(case, name) if name in source else None
        yield DrillCandidate(
            dataset=name, target=common.target if common else there.newest, source=common.source if common else None,
            there=there, here=source.get(name), away=away,
        )  # fmt: skip


def recorded_snapshots(kit: str | None, case: PlanContext) -> Mapping[str, Mapping[str, int]]:
    """Return for each dataset the guids of its snapshots by name, as the newest recovery kit records them."""
    found: dict[str, dict[str, int]] = {}
    root = case.job.source.path
    for whole, guid, *_ in parse_kit_content(kit)["snapshots"] if kit else ():
        dataset, _, name = whole.partition("@")
        if f"{dataset}/".startswith(f"{root}/"):
            found.setdefault(dataset[len(root) + 1 :], {})[name] = int(guid)
    return found


def is_recorded(one: DrillCandidate, known: Mapping[str, Mapping[str, int]]) -> bool | None:
    """Return whether the snapshot is the source's, by guid; None: neither bookmarks nor the kit show it."""
    if one.source is not None:
        return True
    own = known.get(one.dataset, {})
    if one.here and any(mark.guid == one.target.guid for mark in one.here.bookmarks):
        return True
    if one.target.guid in own.values():
        return True
    return False if one.target.name in own else None

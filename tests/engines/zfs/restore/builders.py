"""A copy and the pool that it returns to, on the model world: the forward run's own machinery, with its sides exchanged."""

from dataclasses import dataclass, replace
from typing import Any

from orchestrator.domain.dataset_restore import DatasetRestorePlan, DatasetRestoreRequest
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.model import ZfsSurvey
from orchestrator.engines.zfs.restore import plan as returning
from orchestrator.engines.zfs.restore.model import DatasetRestoreSurvey, Properties
from orchestrator.engines.zfs.restore.plan import cut_to_point
from tests.engines.zfs.model_run import Ferry, ferry, requested
from tests.world import Pool

ROOT, COPY = "tank/photos", "vault/copies/photos"


@dataclass
class WayBack(Ferry):
    """From the copy to where it returns. `out`: the ferry that made the copy."""

    out: Ferry | None = None
    until: RestorePoint | None = None

    def survey(self) -> ZfsSurvey:
        return cut_to_point(replace(super().survey(), returning=COPY), self.until)[0]

    def seen(
        self, *, homeward: bool = True, copied: Properties | None = None, home: Properties | None = None
    ) -> DatasetRestoreSurvey:
        return DatasetRestoreSurvey(
            job=self.job, world=self.survey(), homeward=homeward, copied=copied or {}, home=home or {}, mounts={}
        )

    def plan(self, wants: RunRequest | None = None, **more: Any) -> DatasetRestorePlan:
        return returning.plan(self.seen(**more), wants or requested())


def forward(*snapshots: str, below: tuple[str, ...] = (), **options: Any) -> Ferry:
    """A copy that a run has made."""
    out = ferry(*snapshots, **options)
    for name in below:
        out.source.create(f"{ROOT}/{name}")
        out.source.snapshot(f"{ROOT}/{name}", "a")
    out.run()
    return out


def way_back(out: Ferry, to: str = ROOT, *, below: str = "") -> WayBack:
    """The way back from it into a new pool of the same name."""
    declared: Job = replace(out.job, target=replace(out.job.target, location=Location(path=COPY)))
    home = Pool(name="tank", guid=11)
    job = returning.make_restore_job(declared, DatasetRestoreRequest(to=Location(path=to), below=below))
    root = f"{COPY}/{below}" if below else COPY
    return WayBack(source=out.target, target=home, job=job, root=root, copy=to, out=out)

"""Small builders of jobs, sides and worlds for the tests of what runs."""

from datetime import UTC, datetime
from typing import Any

from orchestrator.domain.job import Job, PipeOptions
from orchestrator.domain.place import Host, Location, Place
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.model import Bookmark, Dataset, DatasetType, SendFlags, SideSurvey, Snapshot, ZfsSurvey
from orchestrator.engines.zfs.options import ZfsOptions

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
ASKED = RunRequest(now=NOW, notes="/notes")
HOST = Host(name="backup", user="root")
SOURCE, COPY = Location(path="tank/photos"), Location(path="vault/copies/photos")
FLAGS = SendFlags()
A, B, C = (Snapshot(name=name, guid=number, createtxg=number) for number, name in enumerate("abc", 1))
MARK = Bookmark(name="kept", guid=1, createtxg=1)
POOL = 0xBEEF
# The tokens of two cut sends, as OpenZFS 2.3.9 told them: a first one, and an incremental one with -c and -e.
FIRST = (
    "1-87e3e8e3f-b8-789c636064000310a500c4ec50360710e72765a52697303030419460caa7a515a79680647ce0f26c48f2499525a9c540bac3"
    "d20fabfe92fcf4d2cc14068605819e674f6ac5fa6820c97382e5f31273538174625eb67e8143220312000005de151e"
)
LATER = (
    "1-d5b8c64e5-118-789c636064000310a501c49c50360710a715e5e7a69766a63040c181a9eeec5c9ff45514806c762475f94959a9c9250c0cc"
    "c507518f26969c5a92520993d70793624f9a4ca92d46220bda1761f56fd25f91057d430ad6a2c9dec794203499e132c9f97989b0aa413f3b2f5"
    "0b1c9260ee9580ea87f92f35372935253f1b6c3e379278727e6e41516a7131500a0e0064f0247e"
)


def job(
    *, source: Location = SOURCE, place: Host | None = None, pipe: PipeOptions | None = None, **options: Any
) -> Job:
    """A job named photos, from tank/photos to vault/copies/photos."""
    target = Place(name="vault", location=Location(path=COPY.path, host=place))
    return Job(
        name="photos", file="photos.toml", engine="zfs", source=source, target=target, options=ZfsOptions(**options),
        pipe=pipe or PipeOptions(),
    )  # fmt: skip


def dataset(name: str = "", *snapshots: Snapshot, kind: DatasetType = DatasetType.FILESYSTEM, **more: Any) -> Dataset:
    """A dataset with these snapshots."""
    return Dataset(name=name, kind=kind, guid=77, createtxg=1, snapshots=snapshots, **more)


def side(root: Location, *datasets: Dataset, **more: Any) -> SideSurvey:
    """A side that holds these."""
    return SideSurvey(
        root=root, pool_guid=POOL, version=(2, 3, 9), datasets={one.name: one for one in datasets},
        **{"programs": True, **more},
    )  # fmt: skip


def world(source: SideSurvey | None = None, target: SideSurvey | None = None, **more: Any) -> ZfsSurvey:
    """A world; by default the source has three snapshots of its root, and the target nothing."""
    return ZfsSurvey(source=source or side(SOURCE, dataset("", A, B, C)), target=target or side(COPY), **more)

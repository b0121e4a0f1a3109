"""The text forms of values: what people and scripts read, and what is refused as one."""

import os
from datetime import UTC, datetime, time

import pytest

from orchestrator.domain.errors import PartlyRefused
from orchestrator.domain.evacuation import DatasetCopy
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import JobHooks, TimeWindow, VerifyRules
from orchestrator.domain.machine import MachineConfig, has_subscribers
from orchestrator.domain.names import parse_name, parse_point_name, show_name
from orchestrator.domain.notice import NtfyChannel
from orchestrator.domain.place import Host, Location, parse_location
from orchestrator.domain.plan import FileCloning, ManifestRecording, TreeLinking, TreeVerification
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.run import Outcome
from orchestrator.domain.schedule import parse_normal_schedule
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Bytes, show_duration, show_size
from tests.engines.rsync.builders import job

TREE = Location(path="/backup/tree")
MANIFEST = Location(path="/backup/manifest.gz")


def test_a_partly_refused_run_carries_what_was_refused() -> None:
    error = PartlyRefused("all else is done", evidence=("tank/a: diverged",), hint="look")
    assert (error.why, error.evidence, error.hint) == ("all else is done", ("tank/a: diverged",), "look")


def test_a_copy_is_called_by_its_disk_and_where_that_is() -> None:
    plain = DatasetCopy(job="photos", place="vault", held=None)
    assert plain.called == "vault"
    assert replace(plain, disk="red", where="the office").called == "disk red at the office"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"plain", "plain"), (b"a\nb\tc\rd\\e", "a\\nb\\tc\\rd\\\\e"), (b"\x01", "\\x01"), ("\u2028".encode(), "\\u2028"),
        (b"\xff", "\\xff"), ("ä".encode(), "ä"),
    ],
)  # fmt: skip
def test_any_name_is_shown_and_comes_back(name: bytes, shown: str) -> None:
    assert show_name(name) == shown
    assert parse_name(shown) == name
    assert show_name(os.fsdecode(name)) == shown


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(ValueError, match="backslash"):
        parse_name("a\\q")
    with pytest.raises(ValueError, match="not the name of a point"):
        parse_point_name("yesterday")
    assert parse_point_name("2026-03-06T050607Z") == datetime(2026, 3, 6, 5, 6, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/srv/photos/", Location(path="/srv/photos")),
        ("/", Location(path="/")),
        ("file:///srv/a%20b", Location(path="/srv/a b")),
        ("ssh://ann@[::1]:2222/srv", Location(path="/srv", host=Host(name="::1", user="ann", port=2222))),
    ],
)
def test_places_are_read(text: str, place: Location) -> None:
    assert parse_location(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\0b",
        "http://x/y",
        "ssh://host/",
        "ssh://host/a?b",
        "file://host/x",
        "ssh://-l@host/x",
        "ssh://host:0/x",
        "ssh://a:b@host/x",
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_location(text)


def test_work_of_our_own_is_shown_as_a_line() -> None:
    record = ManifestRecording(tree=TREE, manifest=MANIFEST, point="p", moved="/notes", linked=None, digest="xxh128")
    assert str(record) == "(poolferry) list /backup/tree, write /backup/manifest.gz"
    point = RestorePoint(name="p", taken=datetime(2026, 3, 6, tzinfo=UTC), tree=TREE, manifest=MANIFEST)
    assert (
        str(TreeVerification(point=point, tree=TREE, workers=1))
        == "(poolferry) read /backup/tree against /backup/manifest.gz"
    )
    linking = TreeLinking(tree=TREE, point=point, source=SourceTree(root=TREE), differing=(b"a", b"b"), joined=())
    assert str(linking) == "(poolferry) link from /backup/tree into /backup/tree all but what differs (2 paths)"
    cloning = FileCloning(tree=TREE, point=point, source=TREE, paths=(b"a",), partial="part", least=Bytes(1))
    assert str(cloning) == "(poolferry) clone from /backup/tree into /backup/tree what differs and is large"


def test_how_runs_end_well() -> None:
    assert [one for one in Outcome if one.well] == [Outcome.DONE, Outcome.INCOMPLETE, Outcome.NOTHING]


def test_what_is_no_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="no schedule"):
        parse_normal_schedule("whenever")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "unknown"),
        (0.44, "0.4 s"),
        (12, "12 s"),
        (200, "3 min 20 s"),
        (60, "1 min"),
        (18120, "5 h 2 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_durations_are_shown(seconds: float | None, shown: str) -> None:
    assert show_duration(seconds) == shown


@pytest.mark.parametrize(
    ("size", "shown"), [(None, "unknown"), (7, "7 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB"), (1 << 60, "1.0 EiB")]
)
def test_sizes_are_shown(size: int | None, shown: str) -> None:
    assert show_size(size) == shown


def test_windows_may_go_over_midnight() -> None:
    night, day = TimeWindow(begin=time(22), end=time(6)), TimeWindow(begin=time(8), end=time(12))
    assert [night.holds(time(hour)) for hour in (23, 5, 6, 12)] == [True, True, False, False]
    assert [day.holds(time(hour)) for hour in (8, 12)] == [True, False]
    assert str(night) == "22:00-06:00"


def test_somebody_listens_where_a_channel_or_a_hook_is() -> None:
    channel = NtfyChannel(name="phone", topic="https://ntfy.example.org/x")
    hooked = replace(job(), hooks=JobHooks(calls=(("late", (("tell",),)),)))
    assert has_subscribers((), MachineConfig(notice=(channel,)))
    assert has_subscribers((hooked,), MachineConfig())
    assert not has_subscribers((job(),), MachineConfig())
    assert VerifyRules().digest == "xxh128"

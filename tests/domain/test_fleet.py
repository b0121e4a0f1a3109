"""A fleet's own words: addresses of a centre, who is well, texts and numbers on their way to it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from orchestrator.domain.fleet import FleetIdentity, is_local, is_socket_below_run, parse_centre, socket_address
from orchestrator.domain.fleet_status import FleetHost, FleetJob, FleetStatus, HostState, silent_at_once, twice_as_much
from orchestrator.domain.fleet_watch import FleetFinding, FleetWatch
from orchestrator.domain.heartbeat import HostBeat
from orchestrator.domain.ledger import LONGEST, divide, incarnation_of, plain_text
from orchestrator.domain.units import Bytes, parse_size

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
HOST = FleetHost(
    name="web-1", state=HostState.SILENT, seen=NOON, clock_ahead=None, version="1", jobs=1, bad=0, oldest_copy=None, waiting=0,
    mistakes=0, told=Bytes(10), most=Bytes(100),
)  # fmt: skip
JOB = FleetJob(
    host="web-1", host_state=HostState.HEARD, job="photos", state="late", why="", hint="", late_after_s=1.0, copied=None,
    last_outcome=None, last_ended=None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("postgresql:///poolferry", True), ("postgresql:///poolferry?host=/run/postgresql&port=5433", True),
        ("postgres://poolferry@localhost/fleet", True), ("postgresql://%2Frun%2Fpg/fleet", True),
        ("postgresql://127.0.0.1:5433,[::1]:5433/fleet", True), ("postgresql://backups.example.org/fleet", False),
        ("postgresql://localhost,backups.example.org/fleet", False), ("postgresql:///fleet?host=backups.example.org", False),
        ("postgresql://backups.example.org/fleet?sslmode=verify-full", False),
    ],
)  # fmt: skip
def test_an_address_of_a_centre(address: str, *, local: bool) -> None:
    assert parse_centre(address) == address
    assert is_local(address) is local


@pytest.mark.parametrize(
    ("address", "seen", "usual"),
    [
        ("postgresql:///fleet?host=/run/pg&port=5433", True, "postgresql:///fleet?port=5433"),
        ("postgresql://%2Frun%2Fpg/fleet", True, "postgresql:///fleet"), ("postgresql:///fleet", True, "postgresql:///fleet"),
        ("postgresql:///fleet?host=/var/run/postgresql", False, "postgresql:///fleet"),
        ("postgresql:///fleet?host=/run/../tmp", False, "postgresql:///fleet"),
        ("postgresql:///fleet?host=/run/pg,/tmp&port=1,2", False, "postgresql:///fleet"),
        ("postgresql://ann@[::1]:5433/fleet?sslmode=verify-full", False, "postgresql:///fleet?port=5433"),
    ],
)  # fmt: skip
def test_an_address_that_the_page_of_a_centre_reaches(address: str, usual: str, *, seen: bool) -> None:
    assert parse_centre(address) == address
    assert (is_socket_below_run(address), socket_address(address)) == (seen, usual)
    assert is_socket_below_run(usual)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("", "an address such as"), ("mysql://a/b", "an address such as"), ("postgresql://backups", "an address such as"),
        ("postgresql://a b/c", "an address such as"), ("postgresql://ann:secret@nas/fleet", "without a password"),
        ("postgresql://nas/fleet?password=secret", "without a password"), ("postgresql://nas/fleet?options=-c", "no options"),
        ("postgresql://nas/fleet?sslmode=prefer", "sslmode=verify-full"),
    ],
)  # fmt: skip
def test_an_address_that_no_centre_has(address: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_centre(address)


def test_what_is_no_address_lies_nowhere() -> None:
    assert not is_local("nonsense")


def test_a_password_is_never_shown() -> None:
    identity = FleetIdentity(host="web-1", role="r", password="secret")  # noqa: S106 - what must not be shown
    assert repr(identity) == "FleetIdentity(host='web-1', role='r')"


def test_a_fleet_is_well_when_nothing_needs_a_person() -> None:
    well = FleetStatus(hosts=(("heard", 1),), jobs=(("up", 1),), silent=(), odd=(HOST,), bad=(), bad_count=0)
    assert well.well, "a clock that is wrong is only named"
    for worse in (
        replace(well, silent=(HOST,)), replace(well, bad=(JOB,), bad_count=1), replace(well, odd=(replace(HOST, mistakes=1),)),
        replace(well, odd=(replace(HOST, told=Bytes(91)),)),
    ):  # fmt: skip
        assert not worse.well


def test_a_beat_without_jobs_leaves_what_was_said_of_them() -> None:
    beat = HostBeat(host_at=NOON, every_s=300.0, version="1", waiting=0, mistakes=2, jobs=None)
    assert (beat.jobs, beat.mistakes) == (None, 2)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Müller", "Müller"), ("a\udcffb", r"a\xffb"), ("a\ud800b", r"'a\ud800b'"), ("a\x00b", r"a\x00b"),
        ("x" * (LONGEST + 1), "x" * (LONGEST - 1) + "…"),
    ],
    ids=["plain", "bytes", "surrogate", "zero", "long"],
)  # fmt: skip
def test_a_text_that_every_database_holds(text: str, held: str) -> None:
    assert plain_text(text) == held
    plain_text(text).encode()


def test_a_row_belongs_to_the_incarnation_that_gave_its_number() -> None:
    begins = {"run": [(10, 2), (20, 3)]}
    assert [incarnation_of("run", key, begins) for key in ("9", "10", "19", "20")] == [1, 2, 2, 3]
    assert [incarnation_of("step", "7", begins), incarnation_of("disk", "an-id", {"disk": [(0, 2)]})] == [1, 1]


@pytest.mark.parametrize(
    ("births", "elsewhere", "first"),
    [
        ({}, {}, 1), ({1: 5, 2: 6}, {}, 3), ({1: 5, 2: 6}, {1: 5, 2: 6, 3: 7}, 3), ({1: 5, 2: 6, 3: 8}, {1: 5, 2: 7, 3: 9}, 2),
    ],
)  # fmt: skip
def test_a_history_that_was_put_back_divides_where_its_rows_are_others(
    births: dict[int, int], elsewhere: dict[int, int], first: int
) -> None:
    assert divide(births, elsewhere) == first


def test_a_quota_that_is_offered_is_one_that_the_command_takes() -> None:
    assert twice_as_much(Bytes(2 << 30)) == "4096M"
    assert parse_size(twice_as_much(Bytes(0))) == 1 << 20
    assert HOST.nearly_full is False
    assert replace(HOST, told=Bytes(91)).nearly_full


def test_many_silent_hosts_at_once_point_to_the_centre() -> None:
    assert silent_at_once(2, 0) == silent_at_once(3, 3) == ""
    said = silent_at_once(4, 3)
    assert said.startswith("4 of 7 hosts are silent at once: look first at the centre")
    status = FleetStatus(hosts=(("heard", 3), ("silent", 4)), jobs=(), silent=(HOST,), odd=(), bad=(), bad_count=0)
    assert (status.silent_count, status.silent_sentence) == (4, said)
    hosts = [FleetFinding(about=f"host {at}", kind="silent", bad=at < 4, why="") for at in range(7)]
    watch = FleetWatch(findings=(*hosts, FleetFinding(about="a disk", kind="disk", bad=True, why="")), removed=0)
    assert (watch.silent_sentence, len(watch.bad)) == (said, 5)


def test_no_address_has_no_socket() -> None:
    with pytest.raises(ValueError, match="postgresql://"):
        socket_address("nowhere")

"""The line that asks for an act: what it says is read back, and whatever is not exactly one act of the list is refused with its reason."""

import json

import pytest

from orchestrator.domain.act import (
    LONGEST_LINE,
    MOST_PATHS,
    SPANS,
    ActRequest,
    ActVerb,
    encode_request,
    parse_path_below,
    parse_request,
)

POINT = "2026-01-01T000000Z"


def line(**told: object) -> bytes:
    return json.dumps(told).encode() + b"\n"


def restored(*paths: object) -> bytes:
    return line(act="restore", job="a", point=POINT, paths=list(paths))


@pytest.mark.parametrize(
    "request_",
    [
        ActRequest(verb=ActVerb.RUN, job="a.b-c"),
        ActRequest(verb=ActVerb.PAUSE, job="a", span="7d", user="ann@example.org"),
        ActRequest(verb=ActVerb.PAUSE, job="a"),
        ActRequest(verb=ActVerb.VERIFY, job="a", point=POINT),
        ActRequest(verb=ActVerb.SNOOZE, disk="red", span="30d"),
        ActRequest(verb=ActVerb.RESTORE, job="a", point=POINT, paths=(b"\xff\n\\x/-rf", "é".encode())),
        ActRequest(verb=ActVerb.EVACUATE, pool="r:pool_2 of-ann.x", user="ann"),
    ],
)
def test_a_line_says_what_its_request_says(request_: ActRequest) -> None:
    said = encode_request(request_)
    assert (said.count(b"\n"), said[-1:]) == (1, b"\n")
    assert parse_request(said) == request_


def test_an_act_is_about_its_job_or_its_disk() -> None:
    assert parse_request(line(act="run", job="photos")).subject == "photos"
    assert parse_request(line(act="eject", disk="red")).subject == "red"
    assert parse_request(line(act="evacuate", pool="tank")).subject == "tank"
    assert parse_request(line(act="evacuate", pool="tank", guid="18446744073709551615")).guid == "18446744073709551615"


def test_nothing_that_destroys_can_be_asked_for() -> None:
    assert {verb.value for verb in ActVerb} == {
        "run", "plan", "pause", "resume", "verify", "acknowledge", "snooze", "eject", "restore", "drill",
        "evacuate",
    }  # fmt: skip
    for verb in ("prune", "destroy", "enroll", "retire", "rollback", "consent", "RUN", "run ", "", None, 1, ["run"]):
        with pytest.raises(ValueError, match="no act that may be asked for; there are run, plan, "):
            parse_request(line(act=verb, job="photos"))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (line(act="run", job="a") + b" " * LONGEST_LINE, "a longer line than any act needs"),
        (b"[" * 60_000, "nested too deep"),
        (b"[]\n", "expected one JSON object on one line"),
        (b"{}\n", "no act that may be asked for"),
        (line(act="run"), "run needs job"),
        (line(act="restore", job="a"), "restore needs paths, point"),
        (line(act="snooze", disk="red"), "snooze needs span"),
        (line(act="run", job="a", allow="shrink"), "run takes job alone"),
        (line(act="verify", job="a", paths=["x"]), "verify takes job, point alone"),
        (line(act="run", job="--all"), "job: not a name"),
        (line(act="run", job=None), "job: not a name"),
        (line(act="run", job=""), "job: not a name"),
        (line(act="eject", disk="/dev/sda"), "disk: not a name"),
        (line(act="verify", job="a", point="latest"), "point: not a name"),
        (line(act="evacuate", job="a"), "evacuate needs pool"),
        (line(act="evacuate", pool="tank", guid="-1"), "guid: not a name"),
        (line(act="run", job="a", pool="tank"), "run takes job alone"),
        (line(act="evacuate", pool="tank", to="/elsewhere"), "evacuate takes guid, pool alone"),
        (line(act="run", job="a", user="a\nb"), "user: not a name"),
        (line(act="pause", job="a", span="99999d"), "span: expected one of 1d, 3d, 7d, 14d, 30d"),
        (line(act="pause", job="a", span=["1d"]), "span: expected one of"),
        (line(act="restore", job="a", point=POINT, paths="x"), "paths: expected a list of texts"),
        (restored("x", 1), "paths: expected a list of texts"),
        (restored(*map(str, range(MOST_PATHS + 1))), "20 at most; take a folder in place of its files"),
        (restored("../../etc/shadow"), "below the point"),
    ],
)  # fmt: skip
def test_what_is_not_exactly_one_act_is_refused_with_its_reason(said: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_request(said)


@pytest.mark.parametrize(
    "name", ["", "-x", "--all", "../etc", "/tank", "tank/photos", "tank@a", "tank ", "tank\n", "t\0", "tänk", "t\udcff", "1tank", "$(id)", "t" * 201]
)  # fmt: skip
def test_what_no_pool_is_called_is_no_pool(name: str) -> None:
    with pytest.raises(ValueError, match="pool: not a name that one can have"):
        parse_request(line(act="evacuate", pool=name))


def test_all_that_may_be_asked_for_at_most_is_taken_and_each_path_once() -> None:
    for span in SPANS:
        assert parse_request(line(act="pause", job="a", span=span)).span == span
    assert len(parse_request(restored(*map(str, range(MOST_PATHS)))).paths) == MOST_PATHS
    assert parse_request(restored("b", "a", "b")).paths == (b"b", b"a")


@pytest.mark.parametrize(
    "path", ["", "/etc/shadow", "..", "a/../b", "a/./b", "a//b", "a/", ".", "a\0b", "\\x00", "\\x2e./a", "\\", "\\UFFFFFFFF", "\\Uffffffff"]
)  # fmt: skip
def test_no_path_leads_out_of_the_point(path: str) -> None:
    with pytest.raises(ValueError, match="paths: not the path of a file or folder"):
        parse_path_below(path)


def test_a_path_is_read_as_it_is_shown() -> None:
    assert parse_path_below("..a/b..\\n\\xff") == b"..a/b..\n\xff"

"""Requests of a key that only copies datasets from here: what a pull sends passes unchanged, and nothing else passes."""

import re
import shlex
from collections.abc import Callable

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.gate import Gate, GateRefusal
from orchestrator.domain.plan import Command, Effect
from orchestrator.gate.admit import admit
from orchestrator.gate.request import parse_request
from tests.engines.zfs.sides import FIRST, LATER
from tests.engines.zfs.survey.token_maker import packed, token, xdr
from tests.gate.mutations import mutated, sent
from tests.gate.zfs_requests import pulled

ROOT = "tank"
GATE = Gate(sends=ROOT)
SOURCES = ("tank", "tank/photos", "tank/a b/c_d:e.f-g")
BOOKMARK = "poolferry_000000000000beef_01234567_0000000000000007"
TAG = "poolferry_000000000000beef_01234567"


def admitted(line: str, gate: Gate = GATE) -> Command:
    _, answer = admit(parse_request(line), gate)
    assert isinstance(answer, Command)
    return answer


@pytest.mark.parametrize("source", SOURCES)
def test_each_request_of_a_pull_is_answered_by_what_it_asks_for(source: str) -> None:
    for asked in pulled(source):
        answer = admitted(ssh_argv(asked)[-1])
        assert (answer.host, answer.effect) == (None, asked.effect)
        expected = asked.argv[4:]
        if asked.argv[3] == "survey.sh":
            expected = ("plain", *expected[1:])
        if asked.argv[3] == "find-datasets.sh":
            expected = (*expected, ROOT)
        assert answer.argv[-len(expected) :] == expected


def test_the_rest_of_a_send_looks_first_whether_its_snapshot_is_below() -> None:
    for script in (("send.sh", "2048k", "60"), ("zfs.sh",)):
        answer = admitted(sent(*script, "send", "-P", "-t", FIRST))
        assert "guid=5502601365937541536 below='tank'\n" in answer.argv[2]
        assert answer.argv[2].index("exit 1") < answer.argv[2].index('zfs "$@"')


Pairs = dict[str, int | str | bool]
TOKEN: Pairs = {"object": 1, "offset": 2, "bytes": 3, "toguid": 4, "toname": "tank/p@a"}


def twice(plain: bytes) -> bytes:
    """The list, with its first pair twice."""
    size = int.from_bytes(plain[12:16], "big" if plain[0] else "little")
    return plain[:12] + plain[12 : 12 + size] + plain[12:]


@pytest.mark.parametrize("made", [packed, xdr])
def test_a_token_that_asks_for_more_is_refused(made: Callable[[Pairs], bytes]) -> None:
    def ask(plain: bytes) -> Command:
        return admitted(sent("zfs.sh", "send", "-P", "-t", token(plain)))

    ask(made(TOKEN))
    others: tuple[Pairs, ...] = ({"toname": "other/p@a"}, {"toname": "tank2/p@a"}, {"toname": "tank/p"}, {"toname": "tank/../x@a"}, {"savedok": True},
                                 {"redact_snaps": 4}, {"toname": "tank/p@a\1"}, {"more": "x"})  # fmt: skip
    for other in others:
        with pytest.raises(GateRefusal):
            ask(made(TOKEN | other))
    with pytest.raises(GateRefusal):
        ask(twice(made(TOKEN)))


def test_a_token_whose_pairs_lie_about_their_size_is_refused() -> None:
    """As zfs would read the next pair where we skip the rest of one."""
    inner = xdr({"toname": "other/secret@a"})[12:-8]
    plain = xdr(TOKEN)
    lying = int.from_bytes(plain[12:16], "big") + len(inner)
    first = plain[12 : 12 + int.from_bytes(plain[12:16], "big")]
    made = plain[:12] + lying.to_bytes(4, "big") + first[4:] + inner + plain[12 + len(first) :]
    with pytest.raises(GateRefusal):
        admitted(sent("zfs.sh", "send", "-P", "-t", token(made)))


HOSTILE = (
    "send other@a", "send -P other/x@a", "send -P tank2@a", "send -P tank", "send -P tank@", "send -P tank@a@b", "send -P tank@%recv",
    "send -R tank@a", "send -PR tank@a", "send -P -R tank@a", "send -PLL tank@a", "send -P tank@a tank@b", "send -P -i other@a tank@b",
    "send -P -i @a tank@b", "send -P -I tank#a tank@b", "send -P -i tank@a other@b", "send -P -i tank@a tank#b", "send -P --redact x tank@b",
    "send -P -t 1-2-3-4", "send -t {later}", "send -P -t {later} tank@a", "send -nP -t {later}", "send -P -S tank/p", "send -P -X tank/p tank@a",
    "destroy tank@a", "destroy tank#b", "destroy -n tank@a", "hold x tank@a", "rename tank/a tank/b", "snapshot tank@x", "set readonly=on tank",
    "receive tank/x", "rollback tank@a", "get all tank", "get -Hp -r -t filesystem,volume -o name,value compression other",
    "get -Hp -r -t filesystem,volume -o name,value keylocation tank", "allow tank", "", "list", "mount -a", "diff tank@a", "clone tank@a tank/x",
)  # fmt: skip


@pytest.mark.parametrize("words", HOSTILE)
def test_nothing_else_of_zfs_passes(words: str) -> None:
    words = words.format(later=LATER)
    with pytest.raises(GateRefusal):
        admitted(sent("zfs.sh", *shlex.split(words)))
    with pytest.raises(GateRefusal):
        admitted(sent("send.sh", "2048k", "60", *shlex.split(words)))


@pytest.mark.parametrize(
    "words",
    [
        ("bookmarks.sh", "other", "tank", "@a", BOOKMARK), ("bookmarks.sh", "tank", "other", "@a", BOOKMARK),
        ("bookmarks.sh", "tank", "tank", "@a", "mine"), ("bookmarks.sh", "tank", "tank", "#a", BOOKMARK),
        ("bookmarks.sh", "tank", "tank", "a", BOOKMARK), ("bookmarks.sh", "tank", "tank", "@a"), ("bookmarks.sh", "tank"), ("bookmarks.sh",),
        ("bookmarks.sh", "tank", "tank", "@a", f"{BOOKMARK}x"), ("bookmarks-one-by-one.sh", "tank", "@a", "mine"),
        ("bookmarks-one-by-one.sh", "other", "@a", BOOKMARK), ("bookmarks-one-by-one.sh", "tank", "@a;id", BOOKMARK),
        ("destroy-bookmarks.sh", "tank@a"), ("destroy-bookmarks.sh", "tank#mine"), ("destroy-bookmarks.sh", f"other#{BOOKMARK}"),
        ("destroy-bookmarks.sh", f"tank@a#{BOOKMARK}"), ("destroy-bookmarks.sh", f"-r#{BOOKMARK}"), ("destroy-bookmarks.sh",),
        ("destroy-bookmarks.sh", f"tank#{BOOKMARK}", "tank@a"), ("hold.sh", TAG), ("hold.sh", "mine", "tank@a"), ("hold.sh", TAG, "other@a"),
        ("hold.sh", "-r", TAG, "tank@a"), ("hold.sh", TAG, "-r"), ("release.sh", "mine", "tank@a"), ("release.sh", TAG, "tank"),
        ("send.sh",), ("send.sh", "9", "60", "send", "-P", "tank@a"), ("send.sh", "9k", "x", "send", "-P", "tank@a"), ("send-sizes.sh",),
        ("send-sizes.sh", "-P", "", "", "other@a"), ("send-sizes.sh", "-P", "", "tank@a", "tank@b"),
        ("send-sizes.sh", "-P", "-t", LATER, "tank@a"), ("send-sizes.sh", "-R", "", "", "tank@a"), ("send-sizes.sh", "-P", "", ""),
        ("look-for-kit.sh", "tank", "other", "tank"), ("look-for-kit.sh", "tank", "tank", "/etc"), ("list-tree.sh", "tank@a", "sha256", "1"),
        ("holds.sh", "tank"), ("list-properties.sh",), ("list-properties.sh", "other"),
        ("store-kit.sh", "tank/x", "photos"), ("receive.sh", "2048k", "60", "receive", "tank/x"), ("abort-receive.sh", "tank/x"),
    ],
)  # fmt: skip
def test_no_mark_but_poolferrys_and_no_other_script(words: tuple[str, ...]) -> None:
    with pytest.raises(GateRefusal):
        admitted(sent(*words))


@pytest.mark.parametrize(
    "words",
    [
        ("7", "0", "other/photos"), ("7", "0", "tank2"), ("7", "0", "tank/../other"), ("7", "0"), ("7", "0", "tank/a", ""), ("7", "0", "tank/a", "other"),
        ("0", "0", "tank"), ("", "0", "tank"), (".*", "0", "tank"), ("7", "x", "tank"), ("7" * 21, "0", "tank"), (),
    ],
)  # fmt: skip
@pytest.mark.parametrize("gate", [GATE, Gate(receives=ROOT)])
def test_a_dataset_is_looked_for_by_its_guid_below_the_gates_own_alone(words: tuple[str, ...], gate: Gate) -> None:
    assert admitted(sent("find-datasets.sh", "7", "0", "tank/a"), gate).argv[-1] == ROOT
    with pytest.raises(GateRefusal):
        admitted(sent("find-datasets.sh", *words), gate)


def test_marks_for_another_pool_are_left_alone_where_the_pools_are_named() -> None:
    marking = [asked for asked in pulled("tank/photos") if asked.effect is Effect.WRITES]
    assert {asked.argv[3] for asked in marking} == {
        "bookmarks.sh", "bookmarks-one-by-one.sh", "destroy-bookmarks.sh", "hold.sh", "release.sh",
    }  # fmt: skip
    for asked in pulled("tank/photos"):
        line = ssh_argv(asked)[-1]
        admitted(line, Gate(sends="tank", pools=("0" * 16, "000000000000beef")))
        if asked.effect is Effect.WRITES:
            with pytest.raises(GateRefusal, match="another pool"):
                admitted(line, Gate(sends="tank", pools=("0" * 16,)))


def test_a_gate_of_several_rights_answers_by_each() -> None:
    gate = Gate(reads=("/srv/photos",), sends="tank", receives="vault/in")
    for words, right in (
        (("look-at-source.sh", "/srv/photos", "whole"), "reads"), (("send.sh", "1k", "60", "send", "-P", "tank@a"), "sends"),
        (("abort-receive.sh", "vault/in/x"), "receives"), (("points.sh", "tank"), "sends"), (("points.sh", "vault/in/x"), "receives"),
    ):  # fmt: skip
        assert admit(parse_request(sent(*words)), gate)[0] == right
    for words in (
        ("abort-receive.sh", "tank/x"),
        ("send.sh", "1k", "60", "send", "-P", "vault/in/x@a"),
        ("points.sh", "vault"),
    ):
        with pytest.raises(GateRefusal):
            admit(parse_request(sent(*words)), gate)


_PARTS = (
    "other", "other@a", "tank/../x@a", "tank2", "-R", "-r", "destroy", "-i", "-I", "-t", LATER, "--", "", "\0", "\n", "$(id)", "mine", "tank#mine",
    "tank@a", "-P", "send", "zfs.sh", "hold.sh", "release.sh", "destroy-bookmarks.sh", "send.sh", TAG, BOOKMARK, f"tank#{BOOKMARK}", "\udcff", "yes",
)  # fmt: skip
_NAMES = re.compile(r"tank(/[A-Za-z0-9_.: -]+)*([@#][A-Za-z0-9_.: -]+)?")


def test_whatever_is_admitted_stays_below_the_dataset() -> None:
    """10,000 requests, made of those of a pull by exchanging, dropping and adding words."""
    lines = [parse_request(ssh_argv(each)[-1]) for source in SOURCES for each in pulled(source)]
    passed = 0
    for request in mutated(lines, _PARTS, seed=3):
        try:
            _, answer = admit(request, GATE)
        except GateRefusal:
            continue
        assert isinstance(answer, Command)
        passed += 1
        script, *values = answer.argv[3:] if answer.argv[0] == "sh" else answer.argv
        assert answer.effect is not Effect.DESTROYS
        assert not {"-R", "destroy", "receive", "-F", "mine", "tank#mine", "other", "other@a"} & set(values), values
        assert [word for word in values if re.search("[/@#]", word[1:]) and not _NAMES.fullmatch(word)] == [], values
        if script in ("hold.sh", "release.sh"):
            assert values[0] == TAG or re.fullmatch("poolferry_000000000000beef_[0-9a-f]{8}", values[0])
        if script == "destroy-bookmarks.sh":
            assert all("#poolferry_" in word for word in values)
    assert passed > 300

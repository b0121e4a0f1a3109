"""The folder of a gate is one plain absolute path, its dataset one plain name; and both sides find a version that both know."""

import pytest

from orchestrator.domain.gate import (
    HELLO,
    PRINTED,
    PROTOCOLS,
    Gate,
    GateHello,
    common_protocol,
    format_hello,
    is_unknown_hello,
    parse_gate_dataset,
    parse_gate_folder,
    parse_hello,
    parse_pool_id,
    who_upgrades,
)


@pytest.mark.parametrize("path", ["/srv", "/srv/photos", "/srv/a-b_c,d", "/srv/..a/.b"])
def test_a_plain_path(path: str) -> None:
    assert parse_gate_folder(path) == path


@pytest.mark.parametrize(
    "path", ["", "/", "//", "srv", "/srv/", "/srv//a", "/srv/.", "/srv/../etc", "ssh://nas/srv", "/srv/a b", "/srv/é"]
)
def test_another_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="an absolute path"):
        parse_gate_folder(path)


@pytest.mark.parametrize("name", ["tank", "tank/a b", "vault/in/laptop_1:2.3-4", "vault/..a"])
def test_a_plain_dataset(name: str) -> None:
    assert parse_gate_dataset(name) == name


@pytest.mark.parametrize(
    "name", ["", "/tank", "tank/", "tank//a", "tank/..", "tank/./a", "tank@a", "tank#a", "tank/%recv", "-tank", "1tank", "tank/é", "t" * 201]
)  # fmt: skip
def test_another_dataset_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a dataset such as"):
        parse_gate_dataset(name)


def test_the_guid_of_a_pool() -> None:
    assert parse_pool_id("09f5e474ffec3f56") == "09f5e474ffec3f56"
    for text in ("", "vault", "09F5E474FFEC3F56", "9f5e474ffec3f56", "718022312345678901"):
        with pytest.raises(ValueError, match="16 hexadecimal"):
            parse_pool_id(text)


def test_the_rights_of_a_gate() -> None:
    assert Gate().rights == ()
    assert Gate(reads=("/srv",), receives="tank").rights == ("reads", "receives")


def test_a_hello_is_one_line_that_says_what_it_says() -> None:
    for hello in (GateHello(poolferry="1.2"), GateHello(poolferry="1.2", gate="laptop", rights=("reads", "adds"))):
        assert "\n" not in format_hello(hello)
        assert parse_hello(format_hello(hello)) == parse_hello(format_hello(hello).encode()) == hello


def test_a_newer_side_may_tell_more_and_nothing_that_it_tells_is_obeyed_or_long() -> None:
    told = parse_hello('{"poolferry": "9\\u001b[2J", "protocols": [2, 3], "gate": "' + "g" * 999 + '", "moon": "full"}')
    assert (told.poolferry, told.protocols, told.gate) == ("9\\x1b[2J", (2, 3), "g" * 200)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "Expecting value"),
        (b"\xff", "invalid start byte"),
        ("[" * 4000, "nested too deep|Expecting value"),
        ("[1]", "no hello"),
        ('{"protocols": [1], "gate": "' + "g" * 4096 + '"}', "no hello"),
        ("{}", "without versions"),
        ('{"protocols": []}', "without versions"),
        ('{"protocols": [true]}', "without versions"),
        ('{"protocols": ["2"]}', "without versions"),
        ('{"protocols": [2], "rights": "adds"}', "other rights than names"),
        ('{"protocols": [2], "rights": [1]}', "other rights than names"),
    ],
)
def test_what_is_no_hello_is_refused(line: str | bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_hello(line)


def test_both_sides_speak_the_newest_version_that_both_know_or_the_older_one_is_upgraded() -> None:
    newest = max(PROTOCOLS)
    assert common_protocol((1,)) == 1
    assert common_protocol((*PROTOCOLS, newest + 1)) == newest
    assert common_protocol((newest + 1,)) is None
    known = " and ".join(map(str, PROTOCOLS))
    assert who_upgrades((newest + 1, newest + 2), here="this machine", there="root@nas") == (
        f"this machine knows version {known} of what is said through a gate, root@nas {newest + 1} and {newest + 2}: "
        "upgrade poolferry on this machine"
    )
    assert who_upgrades((0,), here="this machine", there="root@nas").endswith("upgrade poolferry on root@nas")


def test_a_gate_without_hello_is_known_by_its_refusal() -> None:
    refusal = (
        f"{PRINTED}laptop: refused: it was asked for `{HELLO} '{{}}'`, which is no question that this version knows"
    )
    assert is_unknown_hello(refusal)
    assert not is_unknown_hello(refusal.replace(HELLO, "sums.sh"))
    assert not is_unknown_hello(refusal.removeprefix(PRINTED)), "another program said it"

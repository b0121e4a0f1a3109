"""The folder of a gate is one plain absolute path, and its dataset one plain name."""

import pytest

from orchestrator.domain.gate import Gate, parse_gate_dataset, parse_gate_folder, parse_pool_id


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

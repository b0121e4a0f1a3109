"""Plans and commands hold whole scripts: they are stored packed, and read back as they were."""

import zlib
from binascii import b2a_base64
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.history.packed_text import pack, unpack
from tests.ferry import Ferry


@given(text=st.text(alphabet=st.characters(), max_size=50), times=st.integers(1, 200))
@example(text="zlib:", times=1)
@example(text="zlib:eJwDAA", times=200)
def test_any_text_comes_back(text: str, times: int) -> None:
    assert unpack(pack(text * times)) == text * times


def test_what_is_short_stays_readable_and_what_is_long_takes_less() -> None:
    assert pack("zfs list") == "zfs list"
    script = "".join(f"line {number} of a script\n" for number in range(1000))
    assert len(pack(script)) < len(script) / 4
    assert pack(script).isascii()


@pytest.mark.parametrize(
    "text",
    [
        "zlib:",
        "zlib:x",
        "zlib:!!!!",
        "zlib:eJwDAA",
        "zlib:" + b2a_base64(zlib.compress(b"x" * 9)[:-2], newline=False).decode(),
    ],
)
def test_damage_is_no_text(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpack(text)


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.history.packed_text._MOST_UNPACKED", 10_000)
    with pytest.raises(ValueError, match="cut, or too long"):
        unpack("zlib:" + b2a_base64(zlib.compress(b"x" * 20_000)).decode().strip())


def test_what_is_too_long_to_be_unpacked_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.history.packed_text._MOST_UNPACKED", 10_000)
    assert unpack(pack("x" * 20_000)) == "x" * 20_000
    assert unpack(pack("\U0001f4be" * 2_500)) == "\U0001f4be" * 2_500
    with pytest.raises(ValueError, match="too long to be packed"):
        pack("zlib:" * 2_500)


@pytest.mark.slow
def test_a_run_takes_little_room_and_is_shown_whole(ferry: Ferry) -> None:
    ferry.job()
    source, file = ferry.root / "photos-source", ferry.state / "history.sqlite"
    sizes = []
    for number in range(12):
        (source / "b.bin").write_text(f"change {number}")
        assert ferry.run("run", "photos").code == 0
        sizes.append(_used(file))
    assert (sizes[-1] - sizes[1]) / 10 < 25_000, sizes  # unpacked it is twice as much: each step has its script whole
    shown = ferry.run("show", "last", "--verbose").out
    assert "enter_place()" in shown
    assert ferry.run("show", "last", "--json").value["attempt"][0]["decision"]["stages"]


def _used(file: Path) -> int:
    return file.stat().st_size

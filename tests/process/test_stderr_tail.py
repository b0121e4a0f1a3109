"""Last words are bounded and harmless."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.process.pipeline import MOST_BYTES, StderrTail, printable_text


def test_short_words_stay() -> None:
    tail = StderrTail()
    tail.add(b"cannot open 'tank/x': ")
    tail.add("größer \\ \udcff\n".encode("utf-8", "surrogateescape"))
    assert tail.text == "cannot open 'tank/x': größer \\ \\xff"


def test_long_words_keep_their_end_in_whole_lines() -> None:
    tail = StderrTail()
    for number in range(5000):
        tail.add(b"line %d\n" % number)
    first, second, *_, last = tail.text.splitlines()
    assert (first, last) == ("…", "line 4999")
    assert second.startswith("line ")
    assert len(tail.text) <= MOST_BYTES + 2


def test_one_endless_line_is_bounded_too() -> None:
    tail = StderrTail()
    tail.add(b"x" * 1_000_000)
    assert tail.text == "…\n" + "x" * MOST_BYTES


def test_a_carriage_return_ends_a_line() -> None:
    assert printable_text(b"10%\r20%\r\nend\n") == "10%\n20%\nend"


@given(st.binary())
def test_any_bytes_become_printable_text(said: bytes) -> None:
    text = printable_text(said)
    text.encode("utf-8")
    assert all(char.isprintable() or char in "\n\t" or ord(char) >= 0xA0 for char in text)

"""Test what passed, and how large the sender said it would be."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.zfs.commands.progress import ZfsMeter

SAID = b"full\ttank/size\t9@a\t21021552\nsize\t21021552\nwarning: size\t7\nmbuffer: \xff\n"


@given(st.lists(st.integers(1, 40), max_size=20))
def test_however_the_words_are_cut_the_size_is_found(sizes: list[int]) -> None:
    meter, rest = ZfsMeter(), SAID
    for size in (*sizes, len(SAID)):
        meter.heard(rest[:size])
        rest = rest[size:]
    assert meter.expected == 21021552


def test_unknown_is_none() -> None:
    meter = ZfsMeter()
    assert (meter.expected, meter.moved(), meter.feed(b"size\t5\n")) == (None, None, None)
    meter.heard(b"size\t%d\nsize\t-5\nsize\nsize\t\n" % (1 << 60))
    assert meter.expected is None
    assert (meter.passed(7), meter.passed(9), meter.moved()) == (7, 9, 9)


def test_endless_words_are_not_kept() -> None:
    meter = ZfsMeter()
    for _ in range(100):
        meter.heard(b"x" * 100_000)
    assert len(meter._rest) < 1000
    meter.heard(b"\nsize\t3\n")
    assert meter.expected == 3

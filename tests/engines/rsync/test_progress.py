"""Progress as it comes, the account at the end, and whether the two sides' counts agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.place import Location
from orchestrator.engines.contract.engine import ManifestCounts, SkippedEntries
from orchestrator.engines.rsync.model import CountsEqual
from orchestrator.engines.rsync.parse import RsyncMeter, confirm_counts
from tests.engines.rsync.builders import ACCOUNT

PROGRESS = b"".join(b"\r%15d  %d%%  1.00MB/s    0:00:00 " % (number << 20, number) for number in range(1, 60))
OUTPUT = PROGRESS + b"(xfr#1, to-chk=0/2)\npf:>f+++++++++|2|45|be57|100% x\n" + ACCOUNT
PROOF = CountsEqual(tree=Location(path="/t"))


@given(st.lists(st.integers(1, 5000), max_size=30))
def test_however_the_output_is_cut_the_account_is_found_and_progress_never_goes_back(sizes: list[int]) -> None:
    meter, rest, told = RsyncMeter(), OUTPUT, [0]
    for size in (*sizes, len(OUTPUT)):
        done = meter.feed(rest[:size])
        told += [done] if done is not None else []
        rest = rest[size:]
    assert told == sorted(told)
    assert all(done % (1 << 20) == 0 for done in told)
    assert meter.stats is not None
    assert (meter.stats.regular, meter.moved()) == (16, 18)


def test_after_a_cut_the_last_progress_counts() -> None:
    meter = RsyncMeter()
    assert meter.moved() is None
    meter.feed(PROGRESS)
    meter.feed(b"pf:>f+++++++++|2|45|be57|x\n")
    assert (meter.stats, meter.moved()) == (None, 59 << 20)


def meter(text: bytes = ACCOUNT) -> RsyncMeter:
    fed = RsyncMeter()
    fed.feed(text)
    return fed


def recorded(files: int) -> ManifestCounts:
    return ManifestCounts(entries=99, files=files, bytes=1)


VANISHED = SkippedEntries(vanished=(b"a", b"b"))
UNREADABLE = SkippedEntries(unreadable=((b"c", "Permission denied"),))


@pytest.mark.parametrize(
    ("meters", "left_out", "files", "well"),
    [
        ((meter(),), (), 16, True),
        ((meter(),), (), 15, False),
        ((meter(),), (), 17, False),
        ((meter(), meter()), (), 32, True),  # lanes
        ((meter(), meter()), (), 31, False),
        ((meter(),), (VANISHED,), 14, True),
        ((meter(),), (VANISHED,), 13, False),
        ((meter(),), (VANISHED,), 17, False),
        ((meter(),), (UNREADABLE,), 16, True),  # named by the list, and in the manifest as not read
        ((meter(),), (UNREADABLE,), 17, True),  # not even named: its folder could not be read
        ((meter(),), (UNREADABLE,), 15, False),
        ((meter(), meter()), (VANISHED, UNREADABLE), 30, True),
        ((), (), 5, True),  # nobody told anything, so nothing is compared
    ],
)
def test_counts(meters: tuple[RsyncMeter, ...], left_out: tuple[SkippedEntries, ...], files: int, well: bool) -> None:
    if well:
        confirm_counts(PROOF, meters, left_out, recorded(files))
        return
    with pytest.raises(VerificationFailed, match=f"/t holds {files} files, and the source's list named") as failure:
        confirm_counts(PROOF, meters, left_out, recorded(files))
    assert failure.value.hint


@pytest.mark.parametrize("left_out", [(), (UNREADABLE,)])
def test_without_an_account_nothing_is_proved(left_out: tuple[SkippedEntries, ...]) -> None:
    """Tried: on a full disk rsync drops what it prints, and ends with 0."""
    with pytest.raises(VerificationFailed, match="was not kept to its end") as failure:
        confirm_counts(PROOF, (meter(), meter(b"")), left_out, recorded(16))
    assert "space" in failure.value.hint


def test_an_empty_list_is_an_account_too() -> None:
    none = ACCOUNT.replace(b"Number of files: 25 (reg: 16, dir: 4, link: 2, dev: 2, special: 1)", b"Number of files: 0")
    assert none != ACCOUNT
    confirm_counts(PROOF, (meter(), meter(none)), (), recorded(16))


def test_a_lone_rsync_says_all_on_its_output() -> None:
    meter = RsyncMeter()
    meter.heard(b"anything")
    assert (meter.passed(7), meter.expected) == (7, None)

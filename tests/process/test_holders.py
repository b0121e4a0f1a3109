"""Test who holds a lock, as a person is told: what it is, what it works on, and whether a signal reaches it."""

import pytest

from orchestrator.process.holders import parse_line, parse_waits

STATUS = """Name:\tzfs
Umask:\t0022
State:\t{state}
Tgid:\t4711
SigQ:\t1/7823
SigPnd:\t{own}
ShdPnd:\t{all}
SigBlk:\t0000000000000000
SigIgn:\t0000000000001000
"""
NONE, KILL, TERM, BOTH = "0000000000000000", "0000000000000100", "0000000000004000", "0000000000004100"


@pytest.mark.parametrize(
    ("state", "own", "of_all", "waits"),
    [
        ("S (sleeping)", NONE, NONE, False),
        ("R (running)", TERM, TERM, False),
        ("D (disk sleep)", NONE, NONE, True),
        ("S (sleeping)", KILL, NONE, True),
        ("S (sleeping)", NONE, KILL, True),
        ("I (idle)", NONE, BOTH, True),
        ("T (stopped)", TERM, NONE, False),
    ],
)
def test_what_even_a_kill_does_not_reach_waits_in_the_kernel(state: str, own: str, of_all: str, waits: bool) -> None:
    assert parse_waits(STATUS.format(state=state, own=own, all=of_all)) is waits


def test_a_status_that_tells_nothing_is_no_answer() -> None:
    with pytest.raises(LookupError):
        parse_waits("Name:\tzfs\n")


RECEIVE = ["zfs", "receive", "-s", "-u", *["-o", "org.example:a-long-property=some-long-value"] * 4]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sleep", "600"], "sleep 600"),
        ([*RECEIVE, "vault/replicas/photos"], "zfs receive … vault/replicas/photos"),
        (["/usr/bin/rsync", "--server", *["--long-option"] * 9, ".", "/backup/photos/"], "/usr/bin/rsync --server … /backup/photos/"),
        (["ssh", "-o", "x" * 60, "nas", f"zfs receive {'-o a=b ' * 20}vault/photos"], "ssh -o …{tail}-o a=b vault/photos"),
        (["x" * 200], "{start} …{end}"),
        ([], ""),
    ],
)  # fmt: skip
def test_a_long_line_keeps_what_it_works_on(words: list[str], line: str) -> None:
    told = parse_line(words)
    tail = ("-o a=b " * 20)[-(100 - len("ssh -o …-o a=b vault/photos") - 1) :]
    assert told == line.format(tail=tail, start="x" * 50, end="x" * 47)
    assert len(told) <= 100

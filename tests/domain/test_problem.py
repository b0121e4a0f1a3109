"""Sentences and hints of problems: each names the point, the files, and a command."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from orchestrator.domain.point import MIRROR
from orchestrator.domain.problem import (
    UNREAD_OR_UNSTORED_WORDS,
    UNSTORED_WORDS,
    Problem,
    ProblemType,
    UnseenCopies,
    find_half_written,
    parse_unseen,
    problem_hint,
    problem_sentence,
)


def problem(
    kind: ProblemType, *paths: str, count: int | None = None, tried: bool = False, point: str = "p1", why: str = "rot"
) -> Problem:
    """A problem with this reason."""
    return Problem(
        job="photos", place="/backup/photos", kind=kind, point=point, why=why, paths=paths,
        count=len(paths) if count is None else count, since=datetime(2026, 11, 25, tzinfo=UTC), tried=tried,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (problem(ProblemType.DAMAGED, "a", "b", "c", "d", "e"), "point p1 is damaged (rot): a, b, c and 2 more"),
        (problem(ProblemType.DAMAGED, "a\u202eb"), r"point p1 is damaged (rot): a\u202eb"),
        (problem(ProblemType.DAMAGED, "", count=1), "point p1 is damaged (rot)"),
        (problem(ProblemType.MANIFEST), "point p1 cannot be verified: rot"),
        (problem(ProblemType.KIT, point=""), "rot"),
        (problem(ProblemType.HALF_WRITTEN, point=MIRROR), "the mirror is half written: rot"),
        (problem(ProblemType.SOURCE_ROTTEN, "a", point="", why="p1"), "1 file rotten at the source: a; the good copy is in point p1"),
        (problem(ProblemType.POINTS_GONE, "p1", "p2", point=""), "2 points vanished from /backup/photos that [keep] did not remove: p1, p2"),
        (
            problem(ProblemType.UNPRUNED, point="", why="hourly ones would go"),
            "no snapshot of the source is pruned since 2026-11-25 00:00 UTC, as not all of it was copied: hourly ones would go",
        ),
        (problem(ProblemType.LEFT_OUT, "x"), "1 entry could not be read, so point p1 lacks them: x"),
        (
            problem(ProblemType.LEFT_OUT, "x", "y", why=UNSTORED_WORDS),
            "2 entries could not be stored as they are, so point p1 has them otherwise: x, y",
        ),
        (
            problem(ProblemType.LEFT_OUT, "x", "y", why=UNREAD_OR_UNSTORED_WORDS),
            "2 entries could not be read, or not be stored as they are, so point p1 lacks them, or has them otherwise: x, y",
        ),
        (
            problem(ProblemType.LEFT_OUT, "x", point=MIRROR),
            "1 entry could not be read, so the mirror lacks them, or keeps an older state of them: x",
        ),
    ],
)  # fmt: skip
def test_a_problem_is_one_sentence(found: Problem, says: str) -> None:
    assert problem_sentence(found) == says


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (problem(ProblemType.DAMAGED, count=0), "`poolferry verify photos --point p1` reads it again"),
        (problem(ProblemType.DAMAGED, "a"), "`poolferry run photos` copies damaged files again from the source"),
        (problem(ProblemType.DAMAGED, "a", tried=True), "poolferry points accept photos --point p1"),
        (problem(ProblemType.MANIFEST, point="p2"), "`poolferry run photos` makes a new point, and links nothing to this one"),
        (problem(ProblemType.MANIFEST), "bring p1.manifest.gz back"),
        (problem(ProblemType.POINTS_GONE, point=""), "if that was meant: poolferry points accept photos"),
        (problem(ProblemType.LEFT_OUT, "x"), "then poolferry run photos"),
        (problem(ProblemType.HALF_WRITTEN, point=MIRROR), "`poolferry run photos` goes on with it"),
        (problem(ProblemType.SOURCE_ROTTEN, "a", point="", why="p1"), "`poolferry verify photos --source` names the command"),
        (problem(ProblemType.KIT, point=""), "`poolferry run photos` writes it anew"),
        (problem(ProblemType.UNPRUNED, point=""), "`poolferry plan photos` says what cannot be copied"),
    ],
)  # fmt: skip
def test_a_problem_has_a_hint(found: Problem, says: str) -> None:
    assert says in problem_hint(found, newest="p2")


def test_of_sound_bytes_only_names_and_metadata_are_to_be_changed_back() -> None:
    found = replace(problem(ProblemType.DAMAGED, "a", tried=True), why="1 extra")
    assert problem_hint(found, newest="p2").startswith("its bytes are sound, and no run mends folders")
    rotten = replace(found, why="1 rotten")
    assert problem_hint(rotten, newest="p2").endswith(
        "if you can do without them: poolferry points accept photos --point p1"
    )


def test_what_an_earlier_version_wrote_of_unseen_copies_is_read() -> None:
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert parse_unseen(f'["{at.isoformat()}", "away"]') == UnseenCopies(since=at, why="away")
    off = UnseenCopies(since=at, why="no answer", looked=False)
    assert parse_unseen(str(off)) == off
    assert parse_unseen("no fact") is None


def test_a_mirror_that_a_run_did_not_end_is_a_problem_until_one_has() -> None:
    memory = {
        "mirror half written on disk": '[7, "2026-11-25T00:00:00+00:00"]',
        "mirror half written on other": "",
        "mirror half written on x": "[7]",
    }
    [found] = find_half_written("photos", memory)
    assert (found.place, found.since) == ("disk", datetime(2026, 11, 25, tzinfo=UTC))
    assert problem_sentence(found) == "the mirror is half written: run 7, which changed it, did not end"

"""A number of things is written by one helper, so that nobody reads "1 files"."""

import ast
from pathlib import Path

import pytest

from tests.plural_counts import uncounted

ROOT = Path(__file__).resolve().parent.parent / "orchestrator"


def test_a_number_of_things_is_written_by_show_count() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words}: use show_count"
        for path in sorted(ROOT.rglob("*.py"))
        for line, words in uncounted(ast.parse(path.read_text()))
    ]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('f"{len(paths)} paths differ"', True),
        ('f"took {found.files} files"', True),
        ('f"{count} newer points"', True),
        ('f"{a - b} of {a} entries are gone"', True),
        ('f"{count} files" if count != 1 else "a file"', False),
        ('f"{show_count(count, chr(102))} files"', False),
        ('f"more than {_MOST} files"', False),
        ('f"has more than {most} parts"', False),
        ('f"{name} holds snapshots"', False),
        ('f"{job} copies datasets"', False),
        ('f"{name} is of two files"', False),
    ],
)  # fmt: skip
def test_it_is_seen_where_it_may_be_one(text: str, seen: bool) -> None:
    assert bool(list(uncounted(ast.parse(text)))) == seen

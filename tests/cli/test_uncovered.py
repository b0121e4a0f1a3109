"""`poolferry uncovered`: folders beside the real sources that no job copies."""

import os

from tests.ferry import Ferry


def test_folders_beside_a_source_are_named_and_copies_are_not(ferry: Ferry) -> None:
    ferry.job()
    (ferry.root / "diaries").mkdir()
    (ferry.root / b"odd \n\xff".decode("utf-8", "surrogateescape")).mkdir()
    (ferry.root / "link").symlink_to("/etc")
    ferry.target().mkdir()
    told = ferry.run("uncovered", "--json").value
    assert told["folders"] == [f"{ferry.root}/diaries", f"{ferry.root}/odd \\n\\xff"]
    assert told["datasets"] == []
    assert f"  folder   {ferry.root}/diaries" in ferry.run("uncovered").out
    os.rmdir(ferry.root / "diaries")
    os.rmdir(os.fsencode(ferry.root) + b"/odd \n\xff")
    assert "are copied" in ferry.run("uncovered").out

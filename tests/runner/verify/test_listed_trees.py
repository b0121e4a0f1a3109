"""Listings of trees at hosts, joined with the attributes of their entries."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.runner.verify.listed_trees import with_texts

NAMES = st.sampled_from([b"", b"a", b"a!", b"a/b", b"\xff", b"\xff\xff", b"\xff\xff/\xff", b"\xff" * 255, b"b"])


@given(st.sets(NAMES), st.sets(NAMES))
def test_each_entry_gets_its_own_text(names: set[bytes], told: set[bytes]) -> None:
    """Names of the highest bytes alone among them: before, a listing with one had no end."""
    records = sorted(name + b"//f\t1" for name in names)
    texts = sorted(name + b"//a00" for name in told)
    assert list(with_texts(records, iter(texts))) == [
        (record, "a00" if record[: record.index(b"//")] in told else "-") for record in records
    ]

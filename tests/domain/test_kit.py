"""The digests in a kit's archive tell which file is not as it was written."""

from datetime import UTC, datetime

import pytest

from orchestrator.domain.authentication import KEY_BYTES, AuthenticationKey
from orchestrator.domain.kit import (
    DIGESTS,
    HISTORY,
    KitDigests,
    digest_lines,
    find_damaged_file,
    parse_digest_lines,
    parse_digests,
    seal_digests,
)

FILES = {"kit.json": b"{}", "configuration/jobs/\udcff.toml": b"x"}
WHOLE = {**FILES, DIGESTS: digest_lines(FILES)}


def test_digests_are_those_of_sha256sum() -> None:
    known = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_lines({"empty": b"", "\udcff": b""}) == known + b"  empty\n" + known + b"  \xff\n"


def test_a_file_that_went_bad_was_lost_or_added_is_found() -> None:
    assert find_damaged_file(WHOLE) is None
    assert find_damaged_file(FILES) is None, "an archive of an earlier version holds no digests"
    assert find_damaged_file({**WHOLE, "kit.json": b"{]"}) == "kit.json"
    assert find_damaged_file({**WHOLE, "added": b""}) == "added"
    assert find_damaged_file({name: WHOLE[name] for name in WHOLE if name != "kit.json"}) == DIGESTS
    assert find_damaged_file({**WHOLE, DIGESTS: WHOLE[DIGESTS][:-20]}) == "configuration/jobs/\udcff.toml"


def test_lines_of_digests_are_read_back_and_nothing_else() -> None:
    digest = "e" * 64
    assert parse_digest_lines(f"{digest}  empty\n".encode()) == {"empty": digest}
    for wrong in (b"", f"{digest} empty\n".encode(), f"{digest}  \n".encode(), b"e  empty\n"):
        with pytest.raises(ValueError, match="digests"):
            parse_digest_lines(wrong)


def test_the_sealed_digests_beside_copies_are_read_back_and_no_others() -> None:
    key = AuthenticationKey(b"k" * KEY_BYTES, datetime(2026, 11, 1, tzinfo=UTC))
    told = KitDigests(files={HISTORY: "a" * 64}, before={HISTORY: ("b" * 64, "c" * 64)})
    text = seal_digests(told, "photos", key)
    found = parse_digests(text)
    assert (found.files, found.before, found.key) == (told.files, told.before, key.id)
    assert found.tag == key.kit_tag("photos", told.text)
    first, *rest = text.splitlines(keepends=True)
    for wrong in (
        "".join((first, first, *rest)),
        first.replace("  ", " ") + "".join(rest),
        "".join((*rest[:-1], first, rest[-1])),
        text[:-1],
    ):
        with pytest.raises(ValueError, match=r"digests|not as it was written"):
            parse_digests(wrong)

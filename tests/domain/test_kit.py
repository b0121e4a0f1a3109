"""The digests in a kit's archive tell which file is not as it was written."""

from orchestrator.domain.kit import DIGESTS, digest_lines, find_damaged_file

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

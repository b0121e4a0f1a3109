"""Test that a target's lacks become one refusal: each loss with an entry that needs it, and a hint that consents to it."""

from orchestrator.domain.run import Outcome, outcome_of
from orchestrator.engines.rsync.abilities import ELSEWHERE, explain_unable, required_abilities
from orchestrator.engines.rsync.errors import explain
from orchestrator.engines.rsync.options import RsyncOptions

from .builders import failed


def test_what_is_lost_is_named_with_its_key() -> None:
    error = explain(
        failed("cannot hold owners: a/b\nnoise\ncannot hold capabilities: c\ncannot hold xattrs: \x1b[1m", code=76)
    )
    assert outcome_of(error) is Outcome.REFUSED
    assert error.why == (
        "the target cannot hold what the source has: owners and groups, capabilities and attributes of root, extended attributes; "
        "nothing was copied"
    )
    assert error.hint == (
        f"write owners = false, xattrs = false in [rsync], as far as that may be lost, and run again; or {ELSEWHERE}"
    )
    evidence = explain_unable(["cannot hold owners: a/b", "cannot hold xattrs: \x1b[1m"]).evidence
    assert evidence == ("owners and groups: a/b", "extended attributes: \\x1b[1m")


def test_what_no_key_consents_to() -> None:
    error = explain_unable(["cannot hold symlinks: a", "cannot hold hard-links: points", "cannot hold something: x"])
    assert error.hint == (
        "write points = false in [rsync], as far as that may be lost, and run again; and name in excludes in [rsync], or change at "
        f"the source: symbolic links, something; or {ELSEWHERE}"
    )
    assert error.evidence[1] == "hard links, by which a point shares unchanged files with the one before"
    assert explain_unable(["cannot hold any-times: ."]).hint == ELSEWHERE


def test_what_is_kept_in_attributes_takes_no_other_ability() -> None:
    assert required_abilities(RsyncOptions(fake_super=True)) == ("hard-links", "names", "times", "fake-super")
    assert required_abilities(RsyncOptions(fake_super=True, points=False, hard_links=False))[0] == "names"
    assert explain_unable(["cannot hold fake-super: ."]).hint.startswith("write fake-super = false in [rsync]")


def test_only_what_is_carried_is_required() -> None:
    assert "hard-links" not in required_abilities(RsyncOptions(points=False, hard_links=False))
    assert "hard-links" in required_abilities(RsyncOptions(points=True, hard_links=False))
    bare = RsyncOptions(
        points=False, hard_links=False, owners=False, modes=False, devices=False, acls=False, xattrs=False
    )
    assert required_abilities(bare) == ("symlinks", "names", "times")

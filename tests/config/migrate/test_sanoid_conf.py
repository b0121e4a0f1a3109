"""sanoid.conf with its templates, recursion and overrides."""

import pytest

from orchestrator.config.migrate.sanoid_conf import SanoidPolicy, parse_sanoid_conf

TEMPLATES = """
[template_production]
	hourly = 36
	daily = 30   ; a month
	monthly = 3
	autosnap = yes
[template_none]
hourly = 0
daily = 0
monthly = 0
"""


def parsed(text: str) -> dict[str, SanoidPolicy]:
    return {policy.dataset: policy for policy in parse_sanoid_conf(text + TEMPLATES)}


def test_without_a_word_its_own_defaults_hold() -> None:
    policy = parsed("# first\n[tank/a]\n")["tank/a"]
    assert policy.line == 2
    assert {kind: policy.numbers[kind] for kind in policy.kinds} == {"hourly": 48, "daily": 90, "monthly": 6}
    assert (policy.autosnap, policy.autoprune, policy.below) == (True, True, False)


def test_templates_in_order_then_the_sections_own() -> None:
    text = "[tank/a]\nuse_template = production , none\nweekly = 5\n[template_default]\nyearly = 1\n"
    policy = parsed(text)["tank/a"]
    assert {kind: policy.numbers[kind] for kind in policy.kinds} == {"weekly": 5, "yearly": 1}


def test_recursion_and_exceptions_from_it() -> None:
    found = parsed(
        "[tank]\nuse_template = production\nrecursive = zfs\nautoprune = no\n[tank/a]\ndaily = 1\n[tankard]\n"
    )
    assert found["tank"].below
    assert found["tank/a"].inside == "tank"
    assert (found["tank/a"].numbers["hourly"], found["tank/a"].numbers["daily"]) == (36, 1)
    assert (found["tank/a"].autoprune, found["tank/a"].below) == (False, False)
    assert found["tankard"].inside is None


@pytest.mark.parametrize("word", ["yes", "1", "True", "ON"])
def test_yes_and_its_kin(word: str) -> None:
    assert parsed(f"[a]\nrecursive = {word}\nautosnap = off\n")["a"].below
    assert not parsed(f"[a]\nrecursive = {word}\nautosnap = off\n")["a"].autosnap


def test_a_remark_behind_a_word_makes_it_another_word() -> None:
    policy = parsed("[a]\nrecursive = yes # all\nautosnap = no ; later\n")["a"]
    assert (policy.below, policy.autosnap) == (False, True)


def test_what_has_no_like_is_named_and_watching_is_not() -> None:
    text = (
        "[a]\npre_snapshot_script = /x\ndaily_hour = 3\nmonitor = no\nhourly_warn = 1h\nprocess_children_only = yes\n"
    )
    assert parsed(text)["a"].unlike == ("pre_snapshot_script", "daily_hour", "process_children_only")


def test_a_section_may_name_its_dataset_and_stand_twice() -> None:
    found = parsed("[mine]\npath = tank/a\ndaily = 1\ndaily = 2\n[mine]\nhourly = 3\n")
    assert list(found) == ["tank/a"]
    assert (found["tank/a"].numbers["daily"], found["tank/a"].numbers["hourly"]) == (1, 3)


@pytest.mark.parametrize("text", ["daily = 1\n", "[a]\nhuh\n", "[a]\ndaily = many\n"])
def test_what_cannot_be_read_is_told_by_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"line [12]"):
        parse_sanoid_conf(text)

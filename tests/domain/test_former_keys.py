"""Renamed keys of our JSON stay readable for one version."""

from orchestrator.domain.run_values import with_former_keys


def test_a_renamed_key_is_there_under_both_names_wherever_it_stands() -> None:
    value = {"hint": "mount it", "runs": [{"hint": "", "why": "away"}], "other": ("x", 1)}
    assert with_former_keys(value) == {
        "hint": "mount it", "cure": "mount it", "runs": [{"hint": "", "cure": "", "why": "away"}], "other": ["x", 1],
    }  # fmt: skip


def test_what_is_there_is_not_written_over() -> None:
    assert with_former_keys({"hint": "new", "cure": "old"}) == {"hint": "new", "cure": "old"}

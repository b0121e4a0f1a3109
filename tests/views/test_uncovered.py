"""Lines on what no job copies: nothing is called copied that could not be listed."""

from orchestrator.views.uncovered import uncovered_lines


def test_nothing_is_called_copied_that_could_not_be_listed() -> None:
    assert uncovered_lines((), (), "")[0].startswith("all datasets")
    lines = uncovered_lines((), (), "cannot open 'tank'")
    assert lines == ["all folders beside the sources are copied", "datasets could not be listed: cannot open 'tank'"]

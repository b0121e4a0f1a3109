"""Plans of runs as the terminal shows them: for `plan`, and for `run --dry-run`."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from orchestrator.app.dry_run import DryRun, allowed_guards, forecast_files, plan_run
from orchestrator.cli.terminal.screen import Terminal, exit_code
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point_contents import PlannedFile
from orchestrator.views.plan import dry_run_lines, dry_run_value

_MOST = 1000  # files that are listed for people


def plan_and_show(terminal: Terminal, names: Sequence[str], allow: Sequence[str], *, files: bool = False) -> int:
    """Plan runs of jobs, and show each plan; return the exit code. `files`: name the files, too; for one job."""
    allowed = allowed_guards(terminal, names, allow)
    planned = forecast_files(terminal, names[0]) if files else None
    found = list[DryRun]()
    for name in names:
        found.append(plan_run(terminal, name, allowed=allowed))
        terminal.show(_lines(terminal, name, found[-1]))
    values = [_value(name, each) for name, each in zip(names, found, strict=True)]
    if planned is not None:
        _show_files(terminal, planned, values[0])
    else:
        terminal.answer_json(lambda: values[0] if len(values) == 1 else {"plans": values})
    return exit_code([each.decision.outcome for each in found if isinstance(each.decision, Refusal)])


def _lines(terminal: Terminal, name: str, found: DryRun) -> Iterable[str]:
    return dry_run_lines(
        name, found.decision, found.removes, found.forecast, short=found.short, verbose=terminal.verbose
    )


def _value(name: str, found: DryRun) -> dict[str, Any]:
    return dry_run_value(name, found.decision, found.removes, found.forecast, short=found.short)


def _show_files(terminal: Terminal, found: Iterator[PlannedFile], value: dict[str, Any]) -> None:
    from orchestrator.views.point_contents import PlannedFileCounter, planned_file_lines, planned_file_value

    counter = PlannedFileCounter()
    planned = counter.count(found)
    if terminal.json:
        terminal.answer_entries(value, "files", map(planned_file_value, planned), (), counter.value)
        return
    listed = list(islice(planned, _MOST))
    terminal.show(planned_file_lines(listed))
    for _ in planned:
        pass  # only counted
    terminal.show([counter.line(len(listed))])

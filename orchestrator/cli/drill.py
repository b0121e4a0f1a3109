"""`poolferry drill`: restore a sample to scratch and compare it."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal, exit_code


@click.command(
    "drill",
    cls=CliCommand,
    examples=(
        ("drill photos", "restore a sample into scratch space, and compare it"),
        ("drill photos --whole", "all of the newest point"),
        ("drill photos --self-test", "damage what came back: it must be found"),
    ),
    section="restore",
    short_help="Restore a sample into scratch, and compare.",
)
@click.argument("job", nargs=-1, required=True, shell_complete=complete_job_name)
@click.option("--whole", is_flag=True, help="all of the newest point, no sample")
@click.option("--self-test", is_flag=True, help="damage what came back: it must be found; copies are not touched")
@click.option("--prove", is_flag=True, hidden=True)  # the former name of --self-test, for one version
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="the same files as the drill with this seed")
@pass_terminal
def drill(
    terminal: Terminal, job: Sequence[str], *, whole: bool, self_test: bool, prove: bool, seed: int | None
) -> int:
    """Restore a sample of a job's newest point into scratch, compare it with the manifest, and remove it again.

    A drill that fails ends with 1, and status is failing until one ends well. --self-test shows that a drill can fail.
    """
    from orchestrator.app.copy_checks import drill_jobs
    from orchestrator.views.copies import repair_source_lines, repair_source_values
    from orchestrator.views.drills import drill_value

    ends = drill_jobs(
        terminal,
        job,
        whole=whole,
        self_test=self_test or prove,
        seed=seed,
        hears=lambda hints: terminal.show(repair_source_lines(hints)),
    )
    values = [{**drill_value(each.end), "heal": repair_source_values(each.hints)} for each in ends]
    terminal.answer_json(lambda: values[0] if len(set(job)) == 1 else {"drills": values})
    return exit_code(each.end.report.outcome for each in ends)


COMMAND = drill

"""The command line for people and scripts. A command lies in the file of its name, a group in a folder of its own.

`terminal` holds everything else: reading arguments, and output.
"""

import sys

from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.errors import INTERRUPTED, report_errors
from orchestrator.cli.terminal.runs import parse_gate_call, parse_plain_run, parse_plain_scan
from orchestrator.cli.terminal.screen import Terminal


def main(arguments: list[str] | None = None) -> int:
    """Run one command line; return its exit code. This function raises nothing."""
    given = sys.argv[1:] if arguments is None else arguments
    screen.set_up_output()
    plain, plugged_in = parse_plain_run(given), parse_plain_scan(given)
    gate = parse_gate_call(given)
    terminal = plain.terminal if plain else gate[0] if gate else Terminal(json="--json" in given)
    with report_errors(terminal) as end:
        if plain:
            from orchestrator.cli.terminal.runs import run_and_show

            end.code = run_and_show(terminal, plain.jobs, why=plain.why, scheduled=plain.scheduled)
        elif plugged_in is not None:
            from orchestrator.cli.terminal.runs import scan_and_show

            end.code = scan_and_show(terminal, identity=plugged_in)
        elif gate is not None:
            from orchestrator.cli.terminal.runs import answer_and_show

            end.code = answer_and_show(*gate)
        else:
            from orchestrator.cli.terminal.root import call

            end.code = call(given, terminal)
    with report_errors(terminal) as flushed:
        screen.flush_output()
    return INTERRUPTED if terminal.interrupted and end.code else end.code or flushed.code

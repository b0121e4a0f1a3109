"""The command line: what people and scripts type.

Changes things.
"""

import sys

from orchestrator.interfaces import door
from orchestrator.interfaces.cli.plain import plain_run, plain_scan
from orchestrator.interfaces.failing import explained
from orchestrator.interfaces.frame import Frame


def main(arguments: list[str] | None = None) -> int:
    """Runs one command line; returns its exit code. Nothing comes out of here but that."""
    given = sys.argv[1:] if arguments is None else arguments
    door.set_up()
    plain, plugged_in = plain_run(given), plain_scan(given)
    frame = plain.frame if plain else Frame(json="--json" in given)
    with explained(frame) as end:
        if plain:
            from orchestrator.interfaces.running import run_jobs

            end.code = run_jobs(frame, plain.jobs, why=plain.why)
        elif plugged_in is not None:
            from orchestrator.interfaces.scanning import scan_disks

            end.code = scan_disks(frame, identity=plugged_in)
        else:
            from orchestrator.interfaces.cli.commands import call

            end.code = call(given, frame)
    with explained(frame) as flushed:
        door.flush()
    return end.code or flushed.code

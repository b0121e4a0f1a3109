"""The command line: what people and scripts type."""

import sys

from orchestrator.app.errors import explained
from orchestrator.app.settings import Frame
from orchestrator.cli.fast_path import plain_run, plain_scan
from orchestrator.views import output as door


def main(arguments: list[str] | None = None) -> int:
    """Runs one command line; returns its exit code. Nothing comes out of here but that."""
    given = sys.argv[1:] if arguments is None else arguments
    door.set_up()
    plain, plugged_in = plain_run(given), plain_scan(given)
    frame = plain.frame if plain else Frame(json="--json" in given)
    with explained(frame) as end:
        if plain:
            from orchestrator.app.run_jobs import run_jobs

            end.code = run_jobs(frame, plain.jobs, why=plain.why)
        elif plugged_in is not None:
            from orchestrator.app.disk_scan import scan_disks

            end.code = scan_disks(frame, identity=plugged_in)
        else:
            from orchestrator.cli.commands import call

            end.code = call(given, frame)
    with explained(frame) as flushed:
        door.flush()
    return end.code or flushed.code

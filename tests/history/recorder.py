"""A process that records runs until it is killed, or COUNT of them; it tells each thing once it is acknowledged."""

import sys

from orchestrator.domain.run import Outcome
from orchestrator.history.store import open_history
from tests.history.records import NOON, begin, report


def main(path: str, job: str, count: int) -> None:
    """Records and tells."""
    with open_history(path) as history:
        for _ in range(count):
            run = begin(history, job)
            print("begun", run, flush=True)
            with history.together():
                history.attempt_begun(run, 1, NOON)
                step = history.step_begun(
                    run, 1, 0, action="copy", why="new", worker="", commands=("x" * 3000,), expected=None, now=NOON
                )
                history.step_ended(
                    step, now=NOON, moved=1, confirmed=True, exits=(0,), last_output=("y" * 9000,), error=None
                )
            print("stepped", run, flush=True)
            history.ended(run, report(run, job, Outcome.DONE), NOON)
            print("ended", run, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

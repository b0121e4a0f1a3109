"""The module behind `python -m orchestrator`: the command `poolferry`. It must start and end fast."""

import gc
import os
import sys

TYPE_CHECKING = False  # as typing has it, which takes longer to import than a request of a gate that is handed over
if TYPE_CHECKING:
    from typing import NoReturn


def program() -> "NoReturn":
    """Run the command line, and exit at once: its output is written, and its files and database are closed by then.

    Why: garbage collection of the imported modules and the interpreter's cleanup at the end cost 15 to 20 ms.
    """
    try:
        os._exit(_exit_code())
    except KeyboardInterrupt:  # while modules are imported: what runs then answers Ctrl-C itself
        os._exit(130)


def _exit_code() -> int:
    gc.set_threshold(100_000)
    if sys.argv[1:2] == ["gate"]:
        from orchestrator.process.handover import hand_over

        if (status := hand_over(sys.argv[1:])) is not None:
            return status
    from orchestrator.cli.terminal.inherited import make_safe

    make_safe()
    from orchestrator.cli import main

    code = main()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    program()

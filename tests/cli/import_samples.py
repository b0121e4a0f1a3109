"""Print the modules that a command imports."""

import subprocess

from tests.ferry import COMMAND, Ferry

python = COMMAND[0]


def imported(ferry: Ferry, *arguments: str) -> set[str]:
    """The modules that a command imports."""
    told = subprocess.run(
        [python, "-X", "importtime", "-m", "orchestrator", *arguments],
        env=ferry.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = [line.split("|") for line in told.stderr.splitlines() if line.startswith("import time:")]
    assert lines, told.stderr
    return {line[2].strip().split(".")[0] for line in lines if len(line) == 3}

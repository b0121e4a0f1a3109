"""Runs scripts of ours with stand-ins for the programs in them."""

import os
import subprocess
from pathlib import Path

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.plan import Command


def run(command: Command, folder: Path, programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a script of ours with stand-ins for programs; for a host, through the line that its shell would get."""
    with started(command, folder, programs) as process:
        said, wrong = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, said, wrong)


def started(command: Command, folder: Path, programs: dict[str, str]) -> "subprocess.Popen[str]":
    """Begins such a script."""
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    argv = ("sh", "-c", ssh_argv(command)[-1]) if command.host else command.argv
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"PATH": path, "LC_ALL": "C"}
    )

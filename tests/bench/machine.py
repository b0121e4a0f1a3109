"""The machine that was measured, in a few lines."""

import os
import platform
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

from orchestrator import __version__

_PROGRAMS = {"rsync": "--version", "rsnapshot": "version", "restic": "version", "borg": "--version", "fpsync": "-h"}
"""How each tells its version."""


def machine(folder: Path) -> dict[str, str]:
    """Return what somebody needs to know to judge the numbers."""
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    return {
        "processor": f"{_processor()}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{int(memory[1]) / (1 << 20):.0f} GiB" if memory else "unknown",
        "system": f"{_system()}, Linux {platform.release()}",
        "filesystem": filesystem(folder),
        "versions": ", ".join(
            (
                f"poolferry {__version__}",
                f"Python {platform.python_version()}",
                f"SQLite {sqlite3.sqlite_version}",
                *_programs(),
            )
        ),
        "load before": f"{os.getloadavg()[0]:.1f}",
        "root": "yes" if os.geteuid() == 0 else "no",
    }


def filesystem(folder: Path) -> str:
    """The type and options of the filesystem that holds the folder."""
    found = subprocess.run(["findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", str(folder)], capture_output=True, text=True)
    return " ".join(found.stdout.split()) or "unknown"


def told(about: dict[str, str]) -> str:
    """The description as one line of Markdown for each fact."""
    return "\n".join(f"* {name}: {value}" for name, value in about.items())


def _processor() -> str:
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else platform.machine()


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def _programs() -> list[str]:
    lines = []
    for name, requested in _PROGRAMS.items():
        if shutil.which(name):
            said = subprocess.run([name, requested], capture_output=True, text=True)
            version = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
            lines.append(f"{name} {version[0]}" if version else name)
    return lines

"""The exact lines that run, as a person would paste them into a shell. Pure."""

import os
import re
import shlex

from orchestrator.domain.command import Command, Pipeline
from orchestrator.process.ssh import ssh_argv

# What a terminal or a log file would swallow or choke on: control characters, and bytes that are no UTF-8.
_UNPRINTABLE = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\udc80-\udcff]"
_SECRET = r"PASSWORD|PASSPHRASE|SECRET"


def pipeline_line(pipeline: Pipeline, ssh_options: tuple[str, ...] = ()) -> str:
    """The whole pipeline as one line, ssh and its options written out."""
    head = f" < {quoted(pipeline.reads)}" if pipeline.reads else ""
    tail = f" >> {quoted(pipeline.keeps)}" if pipeline.keeps else ""
    first, *rest = (command_line(stage, ssh_options) for stage in pipeline.stages)
    return " | ".join((first + head, *rest)) + tail


def command_line(command: Command, ssh_options: tuple[str, ...] = ()) -> str:
    """One command as a line; values of variables named as secrets are masked."""
    masked = tuple((name, "***" if re.search(_SECRET, name) else value) for name, value in command.environment)
    shown = Command(argv=command.argv, effect=command.effect, host=command.host, environment=masked)
    settings = [] if command.host else [f"{name}={quoted(value)}" for name, value in masked]
    return " ".join([*settings, *(quoted(word) for word in ssh_argv(shown, ssh_options))])


def quoted(word: str) -> str:
    r"""The word for a shell: as shlex does it, and unprintable bytes as $'\xff', which bash, zsh and ksh read back."""
    if word.isprintable() or not re.search(_UNPRINTABLE, word):
        return shlex.quote(word)
    return "$'" + re.sub(_UNPRINTABLE, _escaped, word.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(match[0]))

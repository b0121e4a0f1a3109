"""setup systemd: the units of this installation, put where systemd finds them."""

import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Group, pass_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_INTO, _RULES_INTO = "/etc/systemd/system", "/etc/udev/rules.d"


@click.group("setup", cls=Group, short_help="Install what the machine needs beside poolferry.")
def setup() -> None:
    """Install what the machine needs beside poolferry itself."""


@setup.command("systemd", short_help="Install the systemd units.")
@click.option("--timer", is_flag=True, help="a timer that looks each five minutes, in place of the daemon")
@click.option("--into", default=_INTO, show_default=True, metavar="DIR", help="where the units go")
@click.option("--rules-into", default=_RULES_INTO, show_default=True, metavar="DIR", help="where udev's rule goes")
@click.option("--print", "show", is_flag=True, help="print the units; write nothing")
@click.option("--remove", is_flag=True, help="take the units away again")
@pass_frame
def systemd(frame: Frame, *, timer: bool, into: str, rules_into: str, show: bool, remove: bool) -> int:
    """Install the systemd units: the daemon, single runs as poolferry-run@JOB, visits of disks that are plugged in.

    Nothing is enabled or started; udev's rule begins visits as soon as a disk is enrolled.
    """
    from orchestrator.views.systemd_units import ALL, DAEMON, RULES, TIMER, unit_texts

    shipped = compose.shipped_units()
    chosen = ALL if remove else TIMER if timer else DAEMON
    texts = unit_texts(
        {name: shipped[name] for name in chosen},
        program=program_here(),
        config=frame.where.config,
        state=frame.where.state,
    )
    rule = {RULES: shipped[RULES]}
    if show:
        texts |= rule
        frame.answer(
            {"units": texts}, [line for name, text in texts.items() for line in (f"# {name}", *text.split("\n"))]
        )
        return 0
    change = _remove if remove else _write
    done = [*change(into, texts), *change(rules_into, rule)]
    if os.path.abspath(into) == _INTO and os.path.isdir("/run/systemd/system"):
        _reload()
    unit = "poolferry-owed.timer" if timer else "poolferry.service"
    following = [] if remove else [f"systemctl enable --now {unit}"]
    value = {"into": into, "removed" if remove else "written": done, "next": following}
    told = [f"{'removed' if remove else 'wrote'} {path}" for path in done] or ["there is nothing to remove"]
    frame.answer(value, [*told, *(["", "Then type:", *(f"  {line}" for line in following)] if following else [])])
    return 0


def _reload() -> None:
    """systemd reads its units again, and udev its rules, which it would do by itself too. Raises: OrchestratorError."""
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.domain.plan import Effect, alone
    from orchestrator.process.executor import Writer

    Writer().stream(alone("udevadm", "control", "--reload", effect=Effect.WRITES))
    result = Writer().stream(alone("systemctl", "daemon-reload", effect=Effect.WRITES))
    if not result.well:
        raise OrchestratorError(
            f"the units are written, but systemd did not read them: {' '.join(result.last_words)}",
            cure="systemctl daemon-reload",
        )


def program_here() -> str:
    """The path of the command that runs now. Raises: UsageError where it has none that stays."""
    beside = os.path.join(os.path.dirname(sys.executable), "poolferry")
    called = sys.argv[0] if os.path.basename(sys.argv[0]) == "poolferry" else beside
    found = called if os.access(called, os.X_OK) else shutil.which("poolferry")
    if found is None:
        raise click.UsageError("the command poolferry is not on the PATH, so no unit could call it")
    return os.path.abspath(found)


def _write(into: str, texts: "Mapping[str, str]") -> "Sequence[str]":
    os.makedirs(into, exist_ok=True)
    paths = []
    for name, text in texts.items():
        path = os.path.join(into, name)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.new", path)
        paths.append(path)
    return paths


def _remove(into: str, texts: "Mapping[str, str]") -> "Sequence[str]":
    paths = [os.path.join(into, name) for name in texts]
    there = [path for path in paths if os.path.exists(path)]
    for path in there:
        os.unlink(path)
    return there


COMMANDS: tuple[click.Command, ...] = (setup,)

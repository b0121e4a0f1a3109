"""init, check, config schema, completion: what comes before the first run."""

import os
from typing import TYPE_CHECKING, Any

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, Group, pass_frame
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.engines.contract import Advice

_COPIES = "/backup/home"


@click.command(cls=Command, short_help="Write a commented starting configuration.")
@click.option("--source", metavar="PLACE", help="what to copy: a directory or ssh://user@host/directory")
@click.option("--target", metavar="PLACE", help="where the copies go: a directory or ssh://user@host/directory")
@pass_frame
def init(frame: Frame, source: str | None, target: str | None) -> int:
    """Write a commented starting configuration; what is there already stays as it is."""
    from orchestrator.config.starter_files import starting_files

    usual = "/home" if os.geteuid() == 0 else os.path.expanduser("~")
    files = starting_files(_absolute(source or usual), _absolute(target or _COPIES))
    folder = frame.where.config
    left = _left_alone(folder, files)
    written = []
    for name, text in files.items():
        path = os.path.join(folder, name)
        if path not in left:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
    following = [frame.repeat("check --system"), frame.repeat("plan home"), frame.repeat("run home")]
    value = {"config": folder, "written": written, "existing": left, "next": following}
    told = [f"wrote {path}" for path in written] + [f"is there already, left as it is: {path}" for path in left]
    frame.answer(value, [*told, "", "Look into the files, then type:", *(f"  {line}" for line in following)])
    return 0


def _absolute(place: str) -> str:
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))


def _left_alone(folder: str, files: Any) -> list[str]:
    """What is there. Job and targets belong together: half of the start beside the half of another is a mistake."""
    jobs = os.path.join(folder, "jobs")
    there = [os.path.join(folder, name) for name in files if os.path.lexists(os.path.join(folder, name))]
    held = [os.path.join(jobs, name) for name in os.listdir(jobs)] if os.path.isdir(jobs) else []
    others = [path for path in sorted(held) if path.endswith(".toml") and path not in there]
    if others or any(path.endswith(".toml") for path in there):
        pair = [os.path.join(folder, name) for name in files if name.endswith(".toml")]
        return [*there, *others, *(path for path in pair if path not in there)]
    return there


@click.command(cls=Command, short_help="Check the configuration.")
@click.option("--system", is_flag=True, help="look at programs, sources and targets too")
@pass_frame
def check(frame: Frame, *, system: bool) -> int:
    """Check the configuration: all mistakes of all files at once, or what each job means."""
    from orchestrator.app.schedule_report import meaning
    from orchestrator.domain.names import show_name

    known = _everything(frame)
    promised = _promised(known)
    advice = (
        [(job, each) for job in known.jobs if not job.target.rotates for each in _advice(frame, job)] if system else []
    )
    machine = _machine_advice(frame, known) if system else ()
    bad = [each for each in (*(each for _, each in advice), *machine) if not each.good and each.hinders]
    jobs = [
        {
            "job": job.name,
            "file": show_name(job.file),
            "engine": job.engine,
            "source": show_name(str(job.source)),
            "target": show_name(str(job.target.location)),
            "schedule": job.schedule,
            "meaning": _meaning(job, meaning(job)),
            "next": promised[job.name][0],
            "advice": [_told(each) for of, each in advice if of is job],
        }
        for job in known.jobs
    ]
    if frame.json:
        told_of = {"machine": [_told(each) for each in machine]} if system else {}
        door.answer_value({"config": frame.where.config, "jobs": jobs, **told_of})
    else:
        for job, told in zip(known.jobs, jobs, strict=True):
            door.answer([str(told["meaning"]), *promised[job.name][1]])
            door.answer(_advice_line(each) for of, each in advice if of is job)
        door.answer(["this machine:", *map(_advice_line, machine)] if machine else [])
    return 1 if bad else 0


def _everything(frame: Frame) -> "Configuration":
    """The jobs, when poolferry.toml is right too. Raises: DeclarationError with the mistakes of all files."""
    from orchestrator.domain.errors import DeclarationError, Mistake

    mistakes: list[Mistake] = []
    known = None
    try:
        known = frame.configuration()
    except DeclarationError as error:
        mistakes += error.mistakes
    try:
        compose.machine(frame.where, [job.name for job in known.jobs] if known else None)
    except DeclarationError as error:
        mistakes += error.mistakes
    if known is None or mistakes:
        raise DeclarationError(tuple(mistakes))
    return known


def _promised(known: "Configuration") -> dict[str, tuple[list[str], list[str]]]:
    """The next runs of each job, for JSON and as lines; none where the clock's libraries are not installed."""
    from orchestrator.app.schedule_report import next_runs

    now = compose.now()
    return {job.name: next_runs(job, now) for job in known.jobs}


def _told(advice: "Advice") -> dict[str, object]:
    hinders = advice.hinders and not advice.good
    return {"good": advice.good, "hinders": hinders, "subject": advice.subject, "text": advice.text}


def _advice_line(advice: "Advice") -> str:
    return f"  {_sign(advice)}  {advice.subject}: {advice.text}"


def _sign(advice: "Advice") -> str:
    return "ok" if advice.good else "!!" if advice.hinders else "hm"


def _meaning(job: "Job", when: str) -> str:
    from orchestrator.domain.names import show_name
    from orchestrator.domain.units import show_duration

    late = f", late after {show_duration(job.late_after)}" if job.late_after else ""
    if not job.copies:
        does = "watches the pool" if job.engine == "pool" else "takes snapshots of"
        return f"{job.name}: {job.engine} {does} {show_name(str(job.source))}, {when}{late}"
    kept = {name: getattr(job.keep, name) for name in ("hourly", "daily", "weekly", "monthly", "yearly")}
    keeps = ", ".join(f"{number} {name}" for name, number in kept.items() if number) or "every point"
    to = f"{show_name(str(job.target.location))} ({job.target.name})"
    if job.target.rotates:
        to = f"the set {job.target.name}"
    return f"{job.name}: {job.engine} copies {show_name(str(job.source))} to {to}, {when}{late}; keeps {keeps}"


def _advice(frame: Frame, job: "Job") -> "tuple[Advice, ...]":
    from orchestrator.engines.registry import engine

    with compose.reader(job, compose.stop_for(None), frame.log) as reader:
        return engine(job.engine).advise(job, reader)


def _machine_advice(frame: Frame, known: "Configuration") -> "tuple[Advice, ...]":
    """What there is to say of the machine itself: the channels' secrets, and the units that keep the times."""
    from orchestrator.app.notify_check import channel_advice
    from orchestrator.app.notify_queue import means_of
    from orchestrator.cli.setup import program_here
    from orchestrator.process.executor import Reader
    from orchestrator.views.systemd_state import Here, rule_installed, unit_advice, units_known

    where = frame.where
    units = units_known(Reader(log=frame.log))
    texts = [text for unit in units.values() for text in (unit.text, *unit.more)]
    channels = channel_advice(compose.machine(where).notice, means_of(where), texts)
    if not units:
        return channels
    here = Here(
        shipped=compose.shipped_units(), program=program_here(), config=where.config, state=where.state,
        scheduled=any(job.schedule or job.after for job in known.jobs), disks=bool(known.sets),
    )  # fmt: skip
    return (*channels, *unit_advice(units, here, rule_installed()))


@click.group("config", cls=Group)
def config() -> None:
    """About the configuration's files."""


@config.command("schema")
@click.argument("file", type=click.Choice(["job", "targets", "machine"]), required=False)
@pass_frame
def schema(frame: Frame, file: str | None) -> int:
    """Print the JSON Schema of the files, or of one kind of them, for editors."""
    import json

    from orchestrator.config.schema import schemas

    found = schemas(compose.EngineSections())
    one = {"job": "jobs/*.toml", "targets": "targets.toml", "machine": "poolferry.toml"}
    chosen: Any = found[one[file]] if file else found
    frame.answer({"schemas": {one[file]: chosen} if file else found}, json.dumps(chosen, indent=2).splitlines())
    return 0


@click.command(cls=Command, short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@pass_frame
def completion(frame: Frame, context: click.Context, shell: str) -> int:
    """Print the script that completes commands and job names in a shell."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    script = made(context.find_root().command, {}, "poolferry", "_POOLFERRY_COMPLETE")
    text = script.source_template % script.source_vars()  # without the class's own look at the shell's version
    frame.answer({"shell": shell, "script": text}, text.splitlines())
    return 0


COMMANDS: tuple[click.Command, ...] = (init, check, config, completion)

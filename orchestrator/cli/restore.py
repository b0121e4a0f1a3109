"""verify, restore, points export: reading copies again, and bringing data back."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator import compose
from orchestrator.app.session import opened, visits_of, worst
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, Group, complete_job, pass_frame
from orchestrator.cli.restore_bootstrap import bootstrap
from orchestrator.cli.restore_pool import pool
from orchestrator.views import output as door

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from orchestrator.domain.errors import NotNow
    from orchestrator.domain.job import Job
    from orchestrator.domain.point import Finding
    from orchestrator.domain.run import RunReport
    from orchestrator.runner.context import Tools
    from orchestrator.runner.restore.request import Wish

POINT = click.option("--point", metavar="POINT", help="a restore point's name, or its beginning; else the newest")


@click.command(cls=Command, short_help="Read copies again and compare.")
@click.argument("job", nargs=-1, shell_complete=complete_job)
@POINT
@click.option("--source", is_flag=True, help="read the source too: tells damage there from changes")
@click.option("--content", is_flag=True, help="of datasets too, read every file on both sides, not only guids")
@pass_frame
def verify(frame: Frame, job: Sequence[str], point: str | None, *, source: bool, content: bool) -> int:
    """Read copies again and compare every file with what was promised; of all jobs without a name.

    Datasets are compared with their source: by the guids of all snapshots, and with --content file by file.
    """
    from orchestrator.app.run_observers import Around
    from orchestrator.domain.run import EXIT
    from orchestrator.runner.verify.verify import Verified, verify_job
    from orchestrator.views.progress import report_lines
    from orchestrator.views.verification import verified_value

    known = frame.configuration()
    named = tuple(known.job(name) for name in dict.fromkeys(job))
    jobs = named or tuple(each for each in known.jobs if each.copies)
    if alone := [each.name for each in jobs if not each.copies]:
        raise click.UsageError(f"{', '.join(alone)}: copies nothing, so there is nothing to verify")
    if point and len(jobs) != 1:
        raise click.UsageError("--point needs one job")
    around = Around(frame.where, known.jobs, door.say)
    done, cured, at = list[Verified](), list[list[dict[str, Any]]](), list["Job"]()
    with opened(frame) as desk, visits_of(frame, desk, known) as visits:

        def read(placed: "Job", absent: "NotNow | None") -> "RunReport":
            if absent is not None:
                raise absent
            at.append(placed)
            done.append(desk.do(placed, verify_job, point=point, against_source=source, content=content))
            return done[-1].report

        for one in jobs:
            report = visits.run(one, read) if visits else read(one, None)
            show_report(frame, report, report_lines(report))
            heal(frame, at[-1], done[-1].point, done[-1].reading.findings if done[-1].reading else (), cured)
            around.changed()
            if desk.stopped:
                break
    if frame.json:
        values = [{**verified_value(each), "heal": found} for each, found in zip(done, cured, strict=True)]
        door.answer_value(values[0] if len(jobs) == 1 else {"verified": values})
    return worst([EXIT[each.report.outcome] for each in done])


def heal(
    frame: Frame, job: "Job", point: str | None, findings: "Sequence[Finding]", into: list[list[dict[str, Any]]]
) -> None:
    """Says where good bytes of what is damaged are, and adds the same for JSON."""
    if not findings:
        into.append([])
        return
    from orchestrator.app.repair_sources import cure_lines, cure_values, cures

    found = cures(frame, job, point, findings)
    into.append(cure_values(found))
    if found and not frame.json:
        door.answer(cure_lines(found))


def show_report(frame: Frame, report: "RunReport", lines: list[str]) -> None:
    """A run's end as lines, unless JSON follows, or nobody wants to hear of what went well."""
    from orchestrator.domain.run import EXIT

    if not frame.json and not (frame.quiet and EXIT[report.outcome] in (0, 75)):
        door.answer(lines)


@click.group("restore", cls=Group, short_help="Bring data back; overwrite nothing.")
def restore() -> None:
    """Bring data back from a restore point. Overwrites nothing."""


def _restoring(command: "Callable[..., int]") -> "Callable[..., int]":
    """The options that plan and run share."""
    for option in (
        click.option("--from", "origin", metavar="PLACE", help="a target itself, where no configuration is left"),
        click.option("--aside", is_flag=True, help="what lies at the destination is renamed and kept"),
        click.option(
            "--content", is_flag=True, help="of datasets, read again every file that came back, not only guids"
        ),
        click.option("--to", metavar="PLACE", help="where to: a path, a dataset, or either on ssh://user@host/"),
        click.option("--path", metavar="PATH", help="only this file, folder or dataset, told from the source's root"),
        click.option("--at", metavar="TIME", help='the newest point not later, such as "2024-11-03 02:31"'),
        POINT,
        click.argument("job", required=False, shell_complete=complete_job),
    ):
        command = option(command)
    return command


@restore.command("plan")
@_restoring
@pass_frame
def restore_plan(frame: Frame, /, job: str | None, origin: str | None, **asked: Any) -> int:
    """What `restore run` would do; without --to, which of all copies to restore from. Changes nothing."""
    from orchestrator.domain.plan import Refusal
    from orchestrator.runner.restore.restore import plan_restore
    from orchestrator.runner.run_recorder import brief_commands, decision_value, step_commands
    from orchestrator.views.progress import decision_lines

    declared = _job(frame, job, origin)
    if asked["to"] is None:
        if origin is not None:
            raise click.UsageError("--from needs --to")
        return _choice(frame, declared, point=asked["point"], at=asked["at"])
    wish = _wish(declared, **asked)
    with opened(frame) as desk:
        decision = desk.do(declared, plan_restore, wish)
    steps = [] if isinstance(decision, Refusal) else decision.steps
    lines = decision_lines(
        declared.name, decision, [(step_commands if frame.verbose else brief_commands)(step) for step in steps]
    )
    value = {"job": declared.name, **decision_value(decision)}
    if origin is None:
        value["others"] = _weigh(frame, declared, wish, lines)
    frame.answer(value, lines)
    return 3 if isinstance(decision, Refusal) else 0


def _weigh(frame: Frame, job: "Job", wish: "Wish", lines: list[str]) -> list[dict[str, Any]]:
    """The copies of other jobs, disks and places that would bring back something newer; each with what to say or do."""
    from orchestrator.app.find_copies import better, find_copies, newer_lines, newer_values

    name = None if wish.point in (None, "latest") else wish.point
    others = better(find_copies(frame, job, at=wish.at, name=name), job, at=wish.at, name=name)
    lines += newer_lines(others)
    return newer_values(others)


def _choice(frame: Frame, job: "Job", *, point: str | None, at: str | None) -> int:
    """Which copy of the job's source to restore from; 75: none that can be reached now, 3: none at all."""
    from orchestrator.app.find_copies import find_copies, found_lines, found_value

    found = find_copies(frame, job, at=_instant(at), name=None if point == "latest" else point)
    frame.answer({"job": job.name, **found_value(found)}, lambda: found_lines(found, now=compose.now()))
    if found.choice.copy is not None:
        return 0
    return 75 if found.choice.newer else 3


@restore.command("run")
@_restoring
@pass_frame
def restore_run(frame: Frame, /, job: str | None, origin: str | None, **asked: Any) -> int:
    """Bring data back and read it again. The same command goes on after an interruption."""
    from orchestrator.domain.run import EXIT, Outcome
    from orchestrator.runner.restore.restore import run_restore
    from orchestrator.runner.run_recorder import report_value
    from orchestrator.views.progress import report_lines

    declared = _job(frame, job, origin)
    wish = _wish(declared, **asked)
    report = _on_its_disk(frame, declared, run_restore, wish)
    show_report(frame, report, report_lines(report))
    value = report_value(report)
    if report.outcome is Outcome.DONE and not wish.to.path.startswith("/"):
        value["chains"] = _chains(frame, declared, wish)
    if frame.json:
        door.answer_value(value)
    return EXIT[report.outcome]


def _on_its_disk(
    frame: Frame, job: "Job", deed: "Callable[[Job, Tools, Wish], RunReport]", wish: "Wish"
) -> "RunReport":
    """Brings back; of copies on removable disks from the one that is here."""
    with opened(frame) as desk:
        if not job.target.rotates:
            return desk.do(job, deed, wish)
        with visits_of(frame, desk, frame.configuration()) as visits:

            def do(placed: "Job", absent: "NotNow | None") -> "RunReport":
                if absent is not None:
                    raise absent
                return desk.do(placed, deed, wish)

            return visits.run(job, do) if visits else do(job, None)


def _chains(frame: Frame, job: "Job", wish: "Wish") -> list[dict[str, Any]]:
    """What each target goes on from; only for data that are back where they came from."""
    from orchestrator.app.next_base import link_lines, link_values, links

    home = job.source / os.fsdecode(wish.path) if wish.path else job.source
    if wish.to != home:
        return []
    found = links(frame, wish.to)
    if found and not frame.json and not frame.quiet:
        door.answer(["the next runs:", *link_lines(found)])
    return link_values(found)


def _job(frame: Frame, name: str | None, origin: str | None) -> "Job":
    if (name is None) is (origin is None):
        raise click.UsageError("tell either a job or --from")
    if name is not None:
        return frame.configuration().job(name)
    return compose.job_found_at(_place("--from", str(origin)), log=frame.log)


def _place(option: str, text: str) -> Any:
    from orchestrator.config.models import parse_anywhere

    try:
        return parse_anywhere(text if "://" in text else os.path.abspath(text))
    except ValueError as error:
        raise click.UsageError(f"{option} {text!r}: expected {error}") from None


def _wish(
    job: "Job", /, *, point: str | None, at: str | None, path: str | None, to: str | None, aside: bool, content: bool
) -> "Wish":
    from orchestrator.runner.restore.request import Wish

    if to is None:
        raise click.UsageError("Missing option '--to'.")
    if point and at:
        raise click.UsageError("tell either --point or --at")
    instant = _instant(at)
    where = _dataset(to) if _holds_datasets(job) and not to.startswith(("/", ".")) else _place("--to", to)
    return Wish(to=where, path=_below(path or ""), point=point, at=instant, aside=aside, content=content)


def _instant(at: str | None) -> "datetime | None":
    from orchestrator.views.format import parse_instant

    try:
        return parse_instant(at) if at else None
    except ValueError as error:
        raise click.UsageError(f"--at {at!r}: expected {error}") from None


def _holds_datasets(job: "Job") -> bool:
    return not job.target.location.path.startswith("/")


def _dataset(text: str) -> Any:
    """The dataset that --to names, here or on a host."""
    from orchestrator.config.models import parse_anywhere
    from orchestrator.config.parse_job import as_dataset, wrong_dataset

    try:
        found = as_dataset(parse_anywhere(text.rstrip("/")))
    except ValueError as error:
        raise click.UsageError(f"--to {text!r}: expected {error}") from None
    if wrong := wrong_dataset(found):
        raise click.UsageError(f"--to: {wrong[0]}: expected {wrong[1]}")
    return found


def _below(path: str) -> bytes:
    """A path below a point as bytes, without slashes at its ends."""
    parts = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise click.UsageError(f'--path {path!r}: expected a path below the source\'s root, without ".."')
    return b"/".join(parts)


@click.command("export", cls=Command)
@click.argument("job", shell_complete=complete_job)
@POINT
@click.option("--to", required=True, metavar="FILE", help="the file to write")
@pass_frame
def export(frame: Frame, job: str, point: str | None, to: str) -> int:
    """Write a point's digests to a file for `sha256sum -c`."""
    from orchestrator.domain.run import EXIT
    from orchestrator.runner.run_recorder import report_value
    from orchestrator.runner.verify.export_sums import export_sums
    from orchestrator.views.progress import report_lines

    declared = frame.configuration().job(job)
    with opened(frame) as desk:
        exported = desk.do(declared, export_sums, point=point, to=os.path.abspath(to))
    show_report(frame, exported.report, report_lines(exported.report))
    if frame.json:
        door.answer_value({**report_value(exported.report), "file": os.path.abspath(to), "lines": exported.lines})
    return EXIT[exported.report.outcome]


restore.add_command(pool)
restore.add_command(bootstrap)
COMMANDS: tuple[click.Command, ...] = (verify, restore)

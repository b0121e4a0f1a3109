"""`poolferry rename`: give a job another name."""

import click

from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "rename",
    cls=CliCommand,
    examples=(
        ("rename photos pictures", "the job photos is called pictures from now on"),
        ("rename photos pictures --json", "the same, with the changed files as JSON"),
    ),
    section="set-up",
    short_help="Give a job another name.",
)
@click.argument("job", metavar="OLD", shell_complete=complete_job_name)
@click.argument("now", metavar="NEW")
@pass_terminal
def rename(terminal: Terminal, job: str, now: str) -> int:
    """Rename a job: its file, its history and its schedule go on under the new name, and so does each copy's chain.

    The copies keep knowing it by its first name, which stands in the job file as `known-as`; so removable disks that are away need
    nothing. Lists of jobs in `after` and in poolferry.toml are changed too. Refused while a run of it goes on. When it was cut, the
    same command finishes it.
    """
    from orchestrator.app.rename_job import rename_job

    done = rename_job(terminal, job, now)
    lines = [
        f"{job} is called {now} now",
        *(f"changed: {path}" for path in done.texts if not path.endswith(f"/{job}.toml")),
    ]
    lines.append(f"not looked at: crontabs, units of systemd and scripts that name {job}")
    terminal.answer({"before": job, "now": now, "changed": sorted(done.texts)}, lines)
    return 0


COMMAND = rename

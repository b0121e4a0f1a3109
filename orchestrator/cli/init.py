"""`poolferry init`: a commented configuration to start from."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "init",
    cls=CliCommand,
    examples=(
        ("init /srv/photos /home root@nas:/backup", "two folders to another machine, over ssh: each becomes a job"),
        (
            "init /etc /home /srv/www root@nas:/backup --together",
            "one job for all of them: one restore point holds all",
        ),
        ("init tank/photos vault/replicas", "a dataset, with all below it, to another pool"),
        ("init /home --disks offsite", "to removable disks that take turns"),
        ("init --watch tank", "watch a pool and scrub it each month"),
        ("init --source /srv/photos --target /backup/photos", "the same words by name: a job called photos"),
    ),
    section="set-up",
    short_help="Write a commented starting configuration.",
)
@click.argument("places", nargs=-1, metavar="[SOURCE... TARGET]")
@click.option(
    "--source", "sources", multiple=True, metavar="PLACE",
    help="what to copy: a folder, a dataset, or either on a host: user@host:/folder, user@host:pool/data (repeatable)",
)  # fmt: skip
@click.option("--target", metavar="PLACE", help="where the copies go: a folder or a dataset, here or on a host")
@click.option("--disks", metavar="SET", help="the copies go to removable disks, a rotation set of this name")
@click.option("--watch", "pools", multiple=True, metavar="POOL", help="a pool to watch and scrub (repeatable)")
@click.option("--together", is_flag=True, help="one job for all folders, in place of one for each")
@pass_terminal
def init(
    terminal: Terminal,
    *,
    places: tuple[str, ...],
    sources: tuple[str, ...],
    target: str | None,
    disks: str | None,
    pools: tuple[str, ...],
    together: bool,
) -> int:
    """Write a commented starting configuration, or jobs beside those that are there, which stay as they are.

    Asks nothing, and says what it understood: what begins with a slash, or is here, is a folder; tank/photos is a dataset. Each SOURCE
    becomes a job, with --together all folders one, and the last place is the target.
    """
    from orchestrator.app.starter import StarterRequest, write_starter

    request = StarterRequest(places=places, sources=sources, target=target, disks=disks, pools=pools, together=together)
    made = write_starter(terminal, request)
    value = {
        "config": made.folder, "understood": list(made.understood), "written": list(made.written), "existing": list(made.existing),
        "added": list(made.added), "next": list(made.following),
    }  # fmt: skip
    told = [*made.understood, *([""] if made.understood else [])]
    told += [f"wrote {path}" for path in made.written]
    told += [f"added {section} to {made.folder}/targets.toml" for section in made.added]
    told += [f"is there already, left as it is: {path}" for path in made.existing]
    terminal.answer(value, [*told, "", "Look into the files, then type:", *(f"  {line}" for line in made.following)])
    return 0


COMMAND = init

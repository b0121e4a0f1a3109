"""metrics: numbers for Prometheus."""

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, pass_frame


@click.command(cls=Command, short_help="Numbers for Prometheus.")
@click.option(
    "--textfile",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="write them there, whole or not at all; needs no reader",
)
@pass_frame
def metrics(frame: Frame, textfile: str | None) -> int:
    """How each job stands, as numbers in Prometheus's text format.

    [metrics] in poolferry.toml has them written after each run, or served by the daemon.
    """
    from orchestrator.app.metrics import metrics_text, write_whole

    text = metrics_text(frame.where, frame.configuration().jobs, compose.now())
    if textfile is not None:
        write_whole(textfile, text)
        frame.answer({"textfile": textfile, "bytes": len(text)}, [])
        return 0
    told = text.decode()
    frame.answer({"metrics": told}, told.splitlines)
    return 0


COMMANDS: tuple[click.Command, ...] = (metrics,)

"""restore bootstrap: a new machine takes over the configuration and history of a lost one."""

from collections.abc import Sequence

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, pass_frame


@click.command("bootstrap", cls=Command, short_help="Take over configuration and history from a kit.")
@click.argument("place")
@click.option("--plan", is_flag=True, help="only tell what is there; write nothing")
@click.option("--aside", is_flag=True, help="a configuration and history that are here are renamed and kept")
@click.option(
    "--trust",
    multiple=True,
    metavar="NAME",
    help='take over as it is: a job that runs hooks or gives ssh options, or "poolferry" for poolferry.toml',
)
@click.option(
    "--ssh-option",
    "options",
    multiple=True,
    metavar="WORD",
    help="for ssh, where PLACE is on a host: -i and then a file, each with this before it",
)
@pass_frame
def bootstrap(frame: Frame, place: str, plan: bool, aside: bool, trust: Sequence[str], options: Sequence[str]) -> int:
    """Find our kit at PLACE and take it over: a device (/dev/disk/by-id/…), a dataset (vault/poolferry-kit), or a folder
    with copies of files; the latter two also on ssh://user@host/. PLACE is only read. What a job of the kit would run here
    is shown, and the job is set aside until --trust names it.
    """
    from orchestrator.app import bootstrap as bootstrapping
    from orchestrator.config.kit_review import review_kit
    from orchestrator.views.format import iso
    from orchestrator.views.progress import reason_lines

    kit, where = bootstrapping.find_kit(place, frame.log, options), frame.where
    review = review_kit(kit.configuration, frozenset(trust))
    last = kit.last
    value = {
        "place": place, "folder": kit.folder, "host": last.host if last else None, "runs": kit.runs, "jobs": list(kit.jobs),
        "last_run": iso(last.begun_at) if last else None, "written": list[str](), "aside": list[str](), "next": list[str](),
        "not_trusted": [{"name": each.name, "acts": list(each.acts)} for each in review.set_aside],
        "left_out": list(review.left_out),
    }  # fmt: skip
    lines = [*bootstrapping.kit_lines(kit, place), *bootstrapping.review_lines(review, where)]
    refusal = None if aside else bootstrapping.refuse(where)
    if refusal is not None:
        told = reason_lines(
            f"refused: {refusal.why}", cure=refusal.cure, evidence=refusal.evidence, evidence_first=True
        )
        frame.answer(
            {**value, "refused": refusal.why, "evidence": refusal.evidence, "cure": refusal.cure}, [*lines, *told]
        )
        return 3
    if not plan:
        moved = bootstrapping.set_aside(where, compose.now()) if aside else ()
        written = bootstrapping.take_over(kit, review, where, place)
        then = bootstrapping.next_steps(where, frame.repeat)
        value |= {"written": list(written), "aside": list(moved), "next": list(then)}
        lines += [f"kept: {path}" for path in moved] + [f"written: {path}" for path in written]
        lines += ["not in a kit: keys, passwords, hooks, ssh's own files", "next:", *(f"  {line}" for line in then)]
    frame.answer(value, lines)
    return 0

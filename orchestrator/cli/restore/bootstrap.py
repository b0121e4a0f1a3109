"""`poolferry restore bootstrap`: a new machine takes over from a lost one."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "bootstrap",
    cls=CliCommand,
    examples=(
        ("restore bootstrap /dev/disk/by-id/usb-X --plan", "look what a disk holds"),
        ("restore bootstrap ssh://root@nas/backup/photos", "take configuration and history from a copy on a host"),
    ),
    short_help="Take over configuration and history from a kit.",
)
@click.argument("place")
@click.option("--plan", is_flag=True, help="only show what is there; write nothing")
@click.option("--aside", is_flag=True, help="a configuration and history that are here are renamed and kept")
@click.option(
    "--trust",
    multiple=True,
    metavar="NAME",
    help='take over as it is: a job that runs hooks or gives ssh options, "poolferry" for poolferry.toml',
)
@click.option("--damaged", is_flag=True, help="take a kit that is not as its SHA256SUMS says")
@click.option(
    "--ssh-option",
    "options",
    multiple=True,
    metavar="WORD",
    help="for ssh, where PLACE is on a host: -i and then a file, each with this before it",
)
@pass_terminal
def command(
    terminal: Terminal, place: str, plan: bool, aside: bool, trust: Sequence[str], damaged: bool, options: Sequence[str]
) -> int:
    """Find our kit at PLACE and take it over: a device (/dev/disk/by-id/…), a dataset (vault/poolferry-kit), or a folder
    with copies of files; the latter two also on ssh://user@host/. PLACE is only read. What a job of the kit would run here
    is shown, and the job is set aside until --trust names it.
    """
    from orchestrator.app.bootstrap import bootstrap
    from orchestrator.views.restore import kit_lines, kit_value, review_lines, review_value
    from orchestrator.views.run_report import reason_lines

    end = bootstrap(terminal, place, plan=plan, aside=aside, damaged=damaged, trust=trust, ssh_options=options)
    value = kit_value(end.kit, place) | review_value(end.review) | {
        "written": list(end.written), "aside": list(end.aside), "next": list(end.following),
    }  # fmt: skip
    lines, refusal = [*kit_lines(end.kit, place), *review_lines(end.review, terminal.where.config)], end.refusal
    if refusal is not None:
        why, evidence = f"refused: {refusal.why}", refusal.evidence
        lines += reason_lines(why, hint=refusal.hint, evidence=evidence, evidence_first=True)
        terminal.answer({**value, "refused": refusal.why, "evidence": evidence, "hint": refusal.hint}, lines)
        return 3
    if end.written:
        lines += [f"kept: {path}" for path in end.aside] + [f"written: {path}" for path in end.written]
        lines += ["not in a kit: keys, passwords, hooks, ssh's own files"]
        lines += ["next:", *(f"  {line}" for line in end.following)]
    terminal.answer(value, lines)
    return 0


COMMAND = command

"""`poolferry completion`: the script that completes our words in a shell."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "completion",
    cls=CliCommand,
    examples=(
        ("completion bash > /etc/bash_completion.d/poolferry", "for all users of bash"),
        ("completion fish > ~/.config/fish/completions/poolferry.fish", "for fish"),
    ),
    section="set-up",
    short_help="Print the completion script of a shell.",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@pass_terminal
def completion(terminal: Terminal, context: click.Context, shell: str) -> int:
    """Print the script that completes commands and job names in a shell."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    script = made(context.find_root().command, {}, "poolferry", "_POOLFERRY_COMPLETE")
    text = script.source_template % script.source_vars()  # without the class's own check of the shell's version
    terminal.answer({"shell": shell, "script": text}, text.splitlines())
    return 0


COMMAND = completion

"""Pages as what was printed: their commands run in one shell, what came without what differs from time to time, and written into them."""

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from orchestrator.cli.terminal.root import root

CHECKOUT = Path(__file__).parent.parent
README = CHECKOUT / "README.md"
TOUR = CHECKOUT / "jobs/tour.md"
OTHER_PROGRAMS = CHECKOUT / "jobs/other-programs.md"
DATASETS = CHECKOUT / "jobs/datasets.md"
_TIME = re.compile(
    r"\b(?:today|yesterday|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)) \d\d:\d\d|\d{4}-\d\d-\d\dT\d{6}Z?|\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"
)
_AMOUNT = re.compile(r"\d+(?:\.\d+)?(?: (?:min|[smhd]|B|[KMG]iB)(?: \d+ (?:min|[sh]))?)?(?![\w-])")
_MARK = "\x01"


def console_blocks(page: Path, prompt: str) -> list[re.Match[str]]:
    """The console blocks of a page whose first line has that prompt; the first group is their text."""
    return list(
        re.finditer(rf"^```console\n({re.escape(prompt)} .*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    )


def commands_of(block: str, prompt: str) -> list[str]:
    """The commands of a block."""
    return [line[len(prompt) + 1 :] for line in block.splitlines() if line.startswith(f"{prompt} ")]


def run_in_one_shell(commands: Sequence[str], *, cwd: Path, environment: dict[str, str]) -> list[tuple[str, int]]:
    """Return each command's output and exit status; all are typed into one shell, as a reader does."""
    typed = "".join(f"{command}\nprintf '{_MARK}%s{_MARK}' $?\n" for command in commands)
    script = cwd / "typed.sh"
    script.write_text(f"exec 2>&1\n{typed}")
    done = subprocess.run(
        ["sh", str(script)],
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    parts = done.stdout.split(_MARK)
    return [(text, int(status)) for text, status in zip(parts[::2], parts[1::2], strict=False)]


def clean_environment() -> dict[str, str]:
    """An environment in which nobody has set poolferry up yet."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("POOLFERRY_")}
    return known | {"COLUMNS": "200", "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def written_into(text: str, blocks: list[re.Match[str]], written: list[str]) -> str:
    """The text with each block's first group replaced."""
    for block, came in zip(reversed(blocks), reversed(written), strict=True):
        text = text[: block.start(1)] + came + text[block.end(1) :]
    return text


def shape(text: str) -> list[str]:
    """Lines with every time and amount made alike, and columns of a table drawn together; versions differ by machine."""
    text = re.sub(r"^.*rsync here: .*$", "rsync here", text, flags=re.MULTILINE)
    return [re.sub(r" {2,}", " ", _AMOUNT.sub("0", _TIME.sub("T", line))).rstrip() for line in text.splitlines()]


_OF_EVERY_COMMAND = {"--json", "--verbose", "--quiet", "--config", "--state", "--help", "--version"}


def is_command(typed: str) -> bool:
    """Return whether poolferry has the command that these words name, with these options; "…" stands for anything."""
    command: click.Command = root
    words = [word for word in shlex.split(typed, comments=True) if word not in ("…", "[…]")]
    while (
        words and isinstance(command, click.Group) and (found := command.get_command(click.Context(command), words[0]))
    ):
        command, words = found, words[1:]
    if (
        isinstance(command, click.Group)
        and words
        and re.fullmatch(r"[a-z][a-z-]+", words[0])
        and not hasattr(command, "usual")
    ):
        return False
    known = _OF_EVERY_COMMAND | {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    return all(word.split("=")[0] in known for word in words if word.startswith("--"))

"""The request of a key: the command line that sshd hands on, taken apart. No shell ever reads it.

Why no language of its own: the other side sends what it would send to a login, so it need not know that a gate is there, and
what is done on either side is one and the same script. The text of a script that comes along is thrown away: the gate runs its
own one of that name.
"""

import re
import shlex

from orchestrator.domain.command_line import SCRIPT_WORDS
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.gate import GateRefusal
from orchestrator.domain.names import printable_word

_SETTING = re.compile(r"LC_ALL=C(\.UTF-8)?")
_WALLED = "start-rsync.sh"
_SCRIPT = re.compile(r"[a-z][a-z-]{0,60}\.sh")
_LONGEST = 100
# A line of words as shlex.join writes them, which is all that poolferry sends: apart in a hundredth of the time that shlex.split takes.
# One sign, or one quoted piece: each begins with another sign, so no line is tried in two ways. Why no possessive quantifiers: Python
# 3.11.2 of Debian 12 reads `(?:a++|'b'*+)++` wrongly, and took a quote that nothing closes.
_PIECES = r"""(?:[A-Za-z0-9_@%+=:,./-]|'[^']*'|"'")+"""
_PLAIN = re.compile(rf"{_PIECES}(?: {_PIECES})*")
_WORD = re.compile(_PIECES)
_PIECE = re.compile("""'([^']*)'|"(')"|([^'"]+)""")


class UnknownQuestion(Exception):
    """Arguments that no version of ours sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """A request: a program or a script of ours (`name` ends in .sh), and its arguments."""

    name: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a message shows it."""
        line = printable_word(shlex.join((self.name, *self.values)))
        return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def parse_request(line: str) -> GateRequest:
    """Take a command line apart. Raises: GateRefusal for one that no poolferry sends."""
    if not line.strip():
        raise GateRefusal("a login, where only single requests are answered")
    try:
        words = split_line(line)
    except ValueError as error:
        raise GateRefusal(f"a command line that cannot be read: {error}") from None
    if words and words[0] == "env":
        words = words[1:]
        while words and _SETTING.fullmatch(words[0]):
            words = words[1:]
    if words[:2] == ["sh", "-c"]:
        packed = words[2:3] == [SCRIPT_WORDS]
        words = [*words[3:4], *words[5 if packed else 4 :]]
        if not words or not _SCRIPT.fullmatch(words[0]):
            raise GateRefusal("a shell")
    if words[:1] == [_WALLED]:
        words = _without_wall(words[1:])
    if not words:
        raise GateRefusal("nothing")
    return GateRequest(name=words[0], values=tuple(words[1:]))


def split_line(line: str) -> list[str]:
    """Return the words of a line as `shlex.split` does. Raises: ValueError."""
    if _PLAIN.fullmatch(line) is None:
        return shlex.split(line)
    return ["".join(map("".join, _PIECE.findall(word))) for word in _WORD.findall(line)]


def _without_wall(words: list[str]) -> list[str]:
    """Return the words of an rsync that the other side starts behind a wall against links: the gate has its own for it.

    Raises: GateRefusal for another program.
    """
    cut = words.index("--") if "--" in words else len(words)
    trees = [word.partition("=") for word in words[:cut]]
    inner = words[cut + 1 :]
    if not inner or inner[0] != "rsync":
        raise GateRefusal("a program")
    return [_by_own_path(word, [(f"/proc/self/fd/{number}", path) for number, _, path in trees]) for word in inner]


def _by_own_path(word: str, trees: list[tuple[str, str]]) -> str:
    """Return a word with the tree's own path in place of that of its open folder."""
    for opened, path in trees:
        if word == opened or word.startswith(f"{opened}/"):
            return (path.rstrip("/") + word[len(opened) :]) or "/"
    return word

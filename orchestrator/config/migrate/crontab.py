"""Crontab lines as values: time and commands; in a user's own form, and in the form of /etc/cron.d with a user."""

import re
import shlex
from collections.abc import Iterator

from orchestrator.config.times import parse_cron
from orchestrator.domain.fast_dataclass import dataclass

_SPECIAL = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\s*=")
_SEPARATORS = ("&&", "||", ";", "|", "&", "(", ")", "\n")
_UNKNOWN = re.compile(r"\$(?=[A-Za-z0-9_{(@*#?!$-])|`")
# Quoted characters are replaced by placeholders while the line is split into words.
_LITERAL = re.compile(r"'[^']*'|\\[$`]")
_ASIDE = str.maketrans("$`", "\ue000\ue001")
_BACK = str.maketrans("\ue000\ue001", "$`")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabCall:
    """One program that a line of a crontab calls.

    `line`: its number; `schedule`: five fields, None for another form; `before`: the text before the program; `waits`: it runs
    only after the command before it in the line has ended well.
    """

    line: int
    when: str
    schedule: str | None
    before: tuple[str, ...]
    words: tuple[str, ...]
    waits: bool = False


def parse_calls(text: str, program: str) -> Iterator[CrontabCall | tuple[int, str]]:
    """Yield each call of a program; or (line, why) for a line that names it and cannot be read."""
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if not re.search(rf"(?:^|[\s/]){program}(?=\s|$)", bare) or bare.startswith("#") or _SETTING.match(bare):
            continue
        when, command = _when(bare)
        if not when:
            yield number, "is no line of a crontab"
            continue
        yield from _calls(number, when, _unescaped(command), program)


def _when(line: str) -> tuple[str, str]:
    """Split the time from the rest of a line; ("", "") for a line without a time."""
    if line.startswith("@"):
        when, _, rest = line.partition(" ")
        return when, rest
    fields = line.split(None, 5)
    if len(fields) < 6 or not all(re.fullmatch(r"[-0-9A-Za-z*,/]+", field) for field in fields[:5]):
        return "", ""
    return " ".join(fields[:5]), fields[5]


def parse_when(when: str) -> str | None:
    """Return five fields that a job file accepts; None when there are none."""
    fields = _SPECIAL.get(when, when)
    try:
        return parse_cron(fields).removeprefix("cron ")
    except ValueError:
        return None


def _unescaped(command: str) -> str:
    r"""Return the command as cron gives it to the shell: a bare % begins its input, and \% is a literal %."""
    return re.split(r"(?<!\\)%", command)[0].replace("\\%", "%")


def _calls(number: int, when: str, command: str, program: str) -> Iterator[CrontabCall | tuple[int, str]]:
    try:
        aside = _LITERAL.sub(lambda match: match[0].translate(_ASIDE), command)
        lexer = shlex.shlex(aside, posix=True, punctuation_chars=";&|()<>")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words = list(lexer)
    except ValueError as error:
        yield number, f"cannot be read as a shell would ({error})"
        return
    for waits, part in _parts(words):
        names = [word.rpartition("/")[2] for word in part]
        if program not in names:
            continue
        at = names.index(program)
        if unknown := next((word for word in part[at:] if _UNKNOWN.search(word)), None):
            yield number, f"only its shell knows what {unknown.translate(_BACK)} is"
            continue
        words_behind = tuple(word.translate(_BACK) for word in part[at + 1 :])
        yield CrontabCall(
            line=number, when=when, schedule=parse_when(when), before=tuple(part[:at]), words=words_behind, waits=waits
        )  # fmt: skip


def _parts(words: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Yield the simple commands of a line, without redirections, and whether each needs the one before to succeed."""
    part: list[str] = []
    waits = skip = False
    for word in words:
        if word in _SEPARATORS:
            yield waits, part
            part, waits = [], word == "&&"
        elif set(word) <= set("<>&"):
            if part and part[-1].isdigit():
                part.pop()
            skip = True
        elif skip:
            skip = False
        else:
            part.append(word)
    yield waits, part

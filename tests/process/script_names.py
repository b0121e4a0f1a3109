"""The names of files that a shell script changes: where it first does, and those that may lead out of the folder it has entered."""

import re
from collections.abc import Iterator

_PROGRAMS = (
    "mv|rm|rmdir|truncate|touch|chmod|chown|chgrp|ln|link|tee|install|mkdir|cp|unlink|fallocate|mkfifo|mknod|shred|setfacl|"
    "setfattr|chattr"
)
# Wherever the word stands as a word of its own: after then, in xargs, behind env or a backslash, with its folder.
_PROGRAM = re.compile(rf"(?<![\w.$/-])(?:\\|(?:/usr)?/s?bin/)?['\"]?({_PROGRAMS})['\"]?(?=[\s;&|)]|$)", re.MULTILINE)
_WORD = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\$\([^)]*\)|[^\s"';&|<>()])+""")
_INTO_FILE = re.compile(r"(?<![0-9<&-])[0-9]?>{1,2}\|?\s*(?![\s>&]|/dev/null\b)")
_WRITES = re.compile(r"\bof=|\bsed\b[^\n;|]*\s-[a-z]*i|\btar\b[^\n;|]*\s-[a-z]*x|\bperl\b[^\n;|]*\s-[a-z]*i")
_ENTERED = re.compile(
    r"\b(?:enter_place|enter_room|enter_folder|enter_marked|be_ours)\b(?!\(\))|\bcd -P -- |\bcd /mnt\b|-execdir "
)
# Options whose next word is no name, and programs whose first word is none.
_VALUED = {"-d", "-s", "-m", "-t", "-o", "-g"}
_FIRST_IS_NO_NAME = {"chmod", "chown", "chgrp"}
# A name here, in folders of ours here or above: no value before a slash, and none at the beginning.
_NEAR = re.compile(r"(?:\./|\.\./)*(?:[\w.~-]+/)*[\w.~:-]*|(?:\./|\.\./|[\w.~-]+/)+[\w.~-]*\$\{?\w+[^/]*")

CHANGING = (
    'mv -T -- "$1/a" "$1/b"', 'cat > "$1/$2"', 'for f in *; do rm "$f"; done', ": > x", "x=$(touch y)", "dd if=a of=b",
    "if mv a b; then :; fi", "! rm x", "command rm x", "/bin/rm x", "\\rm x", "'rm' x", "env rm x", "find . | xargs -0 rm -f",
    "printf x >> y", "printf x >| y", "cat 1> y", "nice cp a b", "sed -i s/a/b/ x", "tar -xf x", "while read -r f; do rm $f; done",
    "setfacl -m u:1:r x", "mknod x p",
)  # fmt: skip
NOT_CHANGING = (
    "find . > /dev/null 2>&1", "printf x >&2", "grep -c remove file", "cat <&3", "dd if=a bs=1 2>/dev/null", "x=form",
    "tar -tf x", "find . -name rm.txt",
)  # fmt: skip
FAR = (
    'rm -- "$1"', 'rm -- "$folder/$name"', "rm $name", 'mv -T -- ./a "$to"', 'mv -T -- "./$folder/$name" ./b', 'cat > "$file"',
    'dd of="$1"', "rm /etc/passwd", 'touch -d "@$time" "$file"', 'chmod 0700 "$room"', 'truncate -s 0 -- "$folder/x"',
    "find . -exec rm {} \\;", "find . -print0 | xargs -0 rm", 'eval "$x"', 'sed -i s/a/b/ "$f"', 'rm -- "./"$a/b',
    "rm -- ${a}/b", "cp a /b", 'cd -- "$root" && rm x', 'while read -r f; do rm "./a/$f/b"; done', ': > "/$x"', "rm `cat list`",
    "rm $(cat list)",
)  # fmt: skip
NEAR = (
    'rm -- "./$name"', 'mv -T -- work "../points/$name"', 'touch -m -d "@$time" .', "mkdir ./trash",
    'chmod "$mode" .', ": > probe", 'dd of=./x if="$1"', 'ln -s -- "points/$name" latest', 'find . -execdir rm -rf -- {} ";"',
)  # fmt: skip


def without_comments(text: str) -> str:
    """The text with blanks in place of comments and of what is said to people, so that all else stands where it stood."""
    plain = re.sub(r"(?m)^\s*#.*$", lambda comment: " " * len(comment[0]), text)
    return re.sub(r'\becho "[^"]*"|\bfor \w+ in [^;\n]*', lambda said: " " * len(said[0]), plain)


def first_change(text: str) -> int | None:
    """Return where a script first changes something by a name; None: nowhere."""
    plain = without_comments(text)
    found = [at.start() for pattern in (_PROGRAM, _INTO_FILE, _WRITES) if (at := pattern.search(plain))]
    return min(found, default=None)


def is_entered_before(text: str, at: int) -> bool:
    """Return whether the script has entered a folder, which cannot be exchanged from then on, before that place in it."""
    entered = _ENTERED.search(without_comments(text))
    return entered is not None and entered.start() <= at


def far_names(text: str) -> list[str]:
    """The names that a script changes and that may lead out of the folder it has entered, or come from a listing."""
    plain = without_comments(text).replace("\\\n", "  ")
    found = [word for program in _PROGRAM.finditer(plain) for word in _operands(program[1], plain[program.end() :])]
    for into in _INTO_FILE.finditer(plain):
        found += [word[0] for word in [_WORD.match(plain, into.end())] if word]
    for into in re.finditer(r"\bof=", plain):
        found += [word[0] for word in [_WORD.match(plain, into.end())] if word]
    bad = [word for word in found if not _NEAR.fullmatch(re.sub(r"[\"']", "", word))]
    moves = re.findall(r"\bcd (?!-P \.\.|-P /|-P -- \"\./)[^;|\n]*", plain) if first_change(text) is not None else []
    return [*bad, *led_by_a_listing(text), *moves]


def led_by_a_listing(text: str) -> list[str]:
    """Return what a script hands on from a listing to a program that changes something, or runs as it is written there."""
    plain = without_comments(text)
    found = re.findall(rf"-exec\s+(?:{_PROGRAMS}|sh)\b", plain)
    found += re.findall(rf"\bxargs\b[^\n;|]*(?<![\w.$/-])(?:{_PROGRAMS})\b", plain)
    return found + re.findall(r"\beval\b|\bsed\b[^\n;|]*\s-[a-z]*i\b", plain)


def _operands(program: str, rest: str) -> Iterator[str]:
    """The names that a program is given. `rest`: the text from its own name on."""
    names, at, valued = 0, 0, False
    while word := _WORD.search(rest, at):
        if re.search(r"[;&|)\n<>]", rest[at : word.start()]) or word[0] in ('";"', "\\"):
            return
        at, text = word.end(), word[0]
        if valued or text.startswith("-") or text == "{}":
            valued = text in _VALUED
            continue
        names += 1
        if names > 1 or program not in _FIRST_IS_NO_NAME:
            yield text

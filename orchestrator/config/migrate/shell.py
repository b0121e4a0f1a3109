"""Commands of a shell's text as values: quotes, simple variables, loops over given words, what runs only in some cases.

Nothing is run. A word whose value only the shell knows (`$(date)`, `$1`) stays as it is written, and is marked.
"""

import re
from collections.abc import Iterator, Mapping

from orchestrator.domain.fast_dataclass import dataclass

_REDIRECTION = re.compile(r"\d*(<<<|<<-?|>>|>\||<>|>&|<&|<|>)|&>>?")
_OPERATOR = re.compile(r"&&|\|\||\|&|;;&?|;&|[;&|()\n]")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_SPECIAL = re.compile(r"\$(?:[0-9@*#?!$-]|\{[^}]*\}?|'[^']*'?)")
_ASSIGNMENT = re.compile(r"(?s)([A-Za-z_]\w*)=(.*)")
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)*(?:#[^\n]*)?")
_CALLABLE = re.compile(r"[ \t]*\([ \t]*\)")
_NUMBER = re.compile(r"[0-9]+|-")
_DECLARES = ("export", "readonly", "local", "declare", "typeset")
_CLOSED_BY = {"if": "fi", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}"}
_LINKS = ("then", "do", "else", "elif", "!")
_SPLIT = "\ue000"  # stands where the value of an unquoted variable is split into words
_MOST = 2000
_DEEPEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """One simple command. `joined`: the operator before it; `inside`: what decides whether it runs, such as "else"; `condition`: an
    `if` asks for its result; `unknown`: the first word that only the shell can know.
    """

    line: int
    joined: str
    words: tuple[str, ...]
    unknown: str = ""
    inside: str = ""
    condition: bool = False
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str  # "word", "operator", "function" or "end"
    text: str
    line: int
    quoted: bool = False
    unknown: bool = False


def parse_commands(text: str, variables: Mapping[str, str], line: int = 1) -> tuple[ShellCommand, ...]:
    """Parse the text of a script or of one line. `line`: the number of its first. Raises: ValueError with the line."""
    reader = _ShellReader(text, variables, line)
    found = []
    for command in reader.commands("", "", ""):
        found.append(command)
        if len(found) > _MOST:
            raise ValueError(f"line {command.line}: has more than {_MOST} commands")
    return tuple(found)


class _ShellReader:
    """The text, how far it was read, and the variables that were set until there."""

    def __init__(self, text: str, variables: Mapping[str, str], line: int) -> None:
        self.text = text.replace(_SPLIT, "?")
        self.at = 0
        self.line = line
        self.variables = dict(variables)
        self.stopping = False  # after `set -e` each command needs the one before
        self._queue: list[_Token] = []
        self._documents: list[str] = []
        self._output: list[str] = []
        self._depth = 0

    def commands(self, joined: str, inside: str, end: str) -> Iterator[ShellCommand]:
        """Yield the commands up to the word `end`, or to the end of the text."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"line {self.line}: is nested deeper than {_DEEPEST}")
        now, asks, words = inside, end == "fi", list[_Token]()
        steady = (
            joined if end == "}" and joined in ("&&", "||") else ""
        )  # a whole group, or branch, runs for one reason
        while True:
            token = self._token()
            plain = token.kind == "word" and not words and not token.quoted
            if token.kind == "function" or (plain and token.text == "function" and self._token().kind != "end"):
                yield from self._function()
            elif plain and token.text == end:
                break
            elif plain and token.text in _LINKS:
                if end == "fi" and token.text in ("then", "else", "elif"):
                    now, asks = inside or token.text.replace("elif", "else"), False
                    joined = steady = "&&" if token.text == "then" else "||"
            elif plain and token.text == "for":
                yield from self._loop(joined, now)
            elif plain and token.text in _CLOSED_BY:
                block = now if token.text in ("if", "{") else token.text
                yield from self.commands(joined, block, _CLOSED_BY[token.text])
            elif token.kind == "word":
                words.append(token)
            else:
                if words:
                    yield from self._simple(words, joined, now, asks=asks)
                    words = []
                if token.kind == "end":
                    break
                joined = self._joined(token.text, steady)
        if words:
            yield from self._simple(words, joined, now, asks=asks)
        self._depth -= 1

    def _joined(self, sign: str, steady: str) -> str:
        if sign not in ("\n", ";"):
            return sign
        return steady or ("&&" if self.stopping else ";")

    def _simple(self, tokens: list[_Token], joined: str, inside: str, *, asks: bool) -> Iterator[ShellCommand]:
        """Yield one command; assignments are remembered instead."""
        output, self._output = tuple(self._output), []
        words = [token.text for token in tokens]
        declared = words[0] in _DECLARES
        if all(_ASSIGNMENT.fullmatch(word) for word in words[declared:]):
            for token in tokens[declared:]:
                name, _, value = token.text.partition("=")
                self.variables.pop(name, None)
                if not token.unknown and not inside:
                    self.variables[name] = value
            return
        if words[0] == "set":
            for word in filter(None, words[1:]):
                self.stopping = word[0] != "+" if re.match(r"[-+][a-z]*e|errexit", word) else self.stopping
            return
        unknown = next((token.text for token in tokens if token.unknown), "")
        yield ShellCommand(
            line=tokens[0].line, joined=joined, words=tuple(words), unknown=unknown, inside=inside, condition=asks,
            output=output,
        )  # fmt: skip

    def _function(self) -> Iterator[ShellCommand]:
        """Yield the commands of a function; the text does not say here when they run."""
        token = self._token()
        while token.kind == "operator" and token.text == "\n":
            token = self._token()
        if token.text in _CLOSED_BY:
            yield from self.commands("", "function", _CLOSED_BY[token.text])

    def _loop(self, joined: str, inside: str) -> Iterator[ShellCommand]:
        """Yield the commands of a loop once for each of its words, where all are known; else once, marked."""
        head: list[_Token] = []
        while (token := self._token()).kind != "end" and token.text != "do":
            head += [token] * (token.kind == "word")
        values = [each for each in head[2:] if head[1].text == "in"]
        known = bool(values) and not any(each.unknown or set("*?[{") & set(each.text) for each in values)
        start = self.at, self.line, list(self._queue)
        for value in values if known else ():
            self.at, self.line, self._queue = start[0], start[1], list(start[2])
            self.variables[head[0].text] = value.text
            yield from self.commands(joined, inside, "done")
        if head:
            self.variables.pop(head[0].text, None)
        if not known:
            yield from self.commands(joined, "for", "done")

    def _token(self) -> _Token:
        if self._queue:
            return self._queue.pop(0)
        text = self.text
        while True:
            blank = _BLANK.match(text, self.at)
            if blank and blank.end() > self.at:
                self.line += text.count("\n", self.at, blank.end())
                self.at = blank.end()
            if self.at >= len(text):
                return _Token(kind="end", text="", line=self.line)
            if redirection := _REDIRECTION.match(text, self.at):
                self.at = redirection.end()
                self._redirect(redirection[0])
                continue
            break
        if operator := _OPERATOR.match(text, self.at):
            self.at = operator.end()
            token = _Token(kind="operator", text=operator[0], line=self.line)
            if operator[0] == "\n":
                self.line += 1
                self._skip_documents()
            return token
        return self._word()

    def _redirect(self, sign: str) -> None:
        """Skip where output goes to or input comes from; a text that follows the line is skipped at its end."""
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        if sign.endswith("&") and (number := _NUMBER.match(self.text, self.at)):
            self.at = number.end()
            return
        if self.at >= len(self.text) or _OPERATOR.match(self.text, self.at):
            return
        held = self._queue
        self._queue = []
        word = self._word()
        self._queue = held
        if "<<" in sign and sign != "<<<":
            self._documents.append(word.text)
        elif ">" in sign:
            self._output.append(word.text)

    def _skip_documents(self) -> None:
        for end in self._documents:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                line = self.text[self.at : stop if stop >= 0 else len(self.text)]
                self.at += len(line) + 1
                self.line += 1
                if line.strip("\t") == end:
                    break
        self._documents = []

    def _word(self) -> _Token:
        """Read one word; several, when a variable's value has spaces: the others wait."""
        begun, line, unknown, quoted = self.at, self.line, False, False
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r\n;&|<>()":
                break
            if char == "'":
                part, quoted = self._until("'"), True
            elif char == '"':
                part, strange = self._double_quoted()
                quoted, unknown = True, unknown or strange
            elif char == "\\":
                part, quoted = self.text[self.at + 1 : self.at + 2].replace("\n", ""), True
                self.at += 2
            elif char in "$`":
                part, strange = self._expanded()
                unknown |= strange
                part = part if strange else re.sub(r"\s+", _SPLIT, part)
            else:
                part = char
                self.at += 1
            parts.append(part)
        self.at = max(self.at, begun + 1)
        self.line += self.text.count("\n", begun, self.at)
        if not quoted and _CALLABLE.match(self.text, self.at):
            self.at = self.text.index(")", self.at) + 1
            return _Token(kind="function", text="".join(parts), line=line)
        first, *more = [part for part in "".join(parts).split(_SPLIT) if part] or [""]
        made = [_Token(kind="word", text=part, line=line, quoted=quoted, unknown=unknown) for part in (first, *more)]
        self._queue += made[1:]
        return made[0]

    def _until(self, sign: str) -> str:
        end = self.text.find(sign, self.at + 1)
        if end < 0:
            raise ValueError(f"line {self.line}: a quotation is not closed")
        part = self.text[self.at + 1 : end]
        self.at = end + 1
        return part

    def _double_quoted(self) -> tuple[str, bool]:
        parts, unknown = list[str](), False
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(parts), unknown
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                parts.append(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif char in "$`":
                part, strange = self._expanded()
                parts.append(part)
                unknown |= strange
            else:
                parts.append(char)
                self.at += 1
        raise ValueError(f"line {self.line}: a quotation is not closed")

    def _expanded(self) -> tuple[str, bool]:
        """Return the value of what begins with $ or `, and False; or the text as it is written, and True."""
        begun = self.at
        if match := _VARIABLE.match(self.text, begun):
            self.at = match.end()
            value = self.variables.get(match[1] or match[2])
            return (match[0], True) if value is None else (value, False)
        if match := _SPECIAL.match(self.text, begun):
            self.at = match.end()
        elif self.text[begun] == "`":
            self._until("`")
        elif self.text.startswith("$(", begun):
            depth = 0
            for at in range(begun + 1, len(self.text)):
                depth += {"(": 1, ")": -1}.get(self.text[at], 0)
                self.at = at + 1
                if depth == 0:
                    break
        else:
            self.at += 1
            return "$", False
        return self.text[begun : self.at], True

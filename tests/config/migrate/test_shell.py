"""The text of scripts and crontab lines as a shell reads it; nothing is run."""

import pytest

from orchestrator.config.migrate.shell import ShellCommand, parse_commands


def parsed(text: str, **variables: str) -> tuple[ShellCommand, ...]:
    return parse_commands(text, variables)


def shown(text: str, **variables: str) -> list[tuple[str, ...]]:
    return [(each.joined, *each.words) for each in parsed(text, **variables)]


def test_operators_and_redirections() -> None:
    text = "syncoid a b >/dev/null 2>&1 && syncoid c d; syncoid e f 2>> /log | logger -t syncoid &"
    assert shown(text) == [
        ("", "syncoid", "a", "b"),
        ("&&", "syncoid", "c", "d"),
        (";", "syncoid", "e", "f"),
        ("|", "logger", "-t", "syncoid"),
    ]


def test_quotes_comments_and_lines_that_go_on() -> None:
    text = "a 'x $y' \"b c\" d\\ e \\\n  --f='x$' # not this\n# nor this\nnext a#b"
    assert shown(text) == [("", "a", "x $y", "b c", "d e", "--f=x$"), (";", "next", "a#b")]
    assert [each.line for each in parsed(text)] == [1, 4]


def test_variables_that_are_set_above() -> None:
    text = 'SRC=tank\nexport DST=\'my vault\'\nO="-r $X"\nsyncoid $O $SRC/a "${DST}/a" $Y'
    (call,) = parsed(text, X="--quiet")
    assert call.words == ("syncoid", "-r", "--quiet", "tank/a", "my vault/a", "$Y")
    assert call.unknown == "$Y"


@pytest.mark.parametrize("word", ["$(hostname)/a", "`hostname`/a", "$1", "${X:-y}", "$@", "a$?", '"$(a "b" (c))"'])
def test_what_only_its_shell_knows(word: str) -> None:
    (call, after) = parsed(f"syncoid {word} b\nx y")
    assert call.unknown == word.strip('"')
    assert (after.unknown, after.words) == ("", ("x", "y"))


def test_a_variable_that_is_set_in_some_case_only_is_unknown() -> None:
    assert parsed("X=1\nif a; then X=2; fi\nb $X")[-1].unknown == "$X"


def test_loops_over_given_words() -> None:
    assert shown("for d in a b; do\nfor e in x y; do run $d/$e; done\ndone\nend $d")[:4] == [
        (";", "run", "a/x"),
        (";", "run", "a/y"),
        (";", "run", "b/x"),
        (";", "run", "b/y"),
    ]
    assert parsed("for d in $(ls); do run $d; done")[0].inside == "for"
    assert parsed("for d in /a/*; do run $d; done")[0].inside == "for"


def test_what_runs_in_some_cases_only() -> None:
    found = parsed("if a; then b; c; else d; fi; e")
    assert [(each.words[0], each.joined, each.inside, each.condition) for each in found] == [
        ("a", "", "", True), ("b", "&&", "then", False), ("c", "&&", "then", False), ("d", "||", "else", False), ("e", ";", "", False),
    ]  # fmt: skip
    assert [each.inside for each in parsed("while read x; do a; done; case $x in y) b;; esac")][1] == "while"
    for head in ("f() {", "f ()\n{", "function f {", "function f() {"):
        assert [(each.words, each.inside) for each in parsed(f"{head}\n a b\n}}\nf")] == [
            (("a", "b"), "function"),
            (("f",), ""),
        ]
    assert parsed("a || { b; c; }")[2].joined == "||"


def test_after_set_e_each_needs_the_one_before() -> None:
    assert [each.joined for each in parsed("a\nset -euo pipefail\nb\nc\nset +e\nd")] == ["", "&&", "&&", ";"]


def test_a_text_for_a_program_is_no_command() -> None:
    assert shown("cat <<'EOF' > x\nsyncoid a b\nEOF\nsyncoid c d") == [("", "cat"), (";", "syncoid", "c", "d")]


@pytest.mark.parametrize("text", ["a\nb 'c", 'a "b', "a\n`b", "{ " * 50, "for a in b c; do " * 20 + "x"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"^line \d+: "):
        parsed(text)

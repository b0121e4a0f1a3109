"""Test where keys stand, against tomllib's own reading of the same text."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.config.locate import Path, locate_keys

TRICKY = r'''# a remark with [brackets] and = signs
top = 1   # [not.a.table]
"quoted key" = "a # in a text"
'single \n' = 'C:\path\'
"esc\t\u00e9\U0001F600" = 2
dotted . "in the" . middle = true
dotted.also = 3
when = 1979-05-27 07:32:00 # a space within
"" = "the empty key"
text = """
[no.table]
no_key = "x"
\""" still inside, and a backslash before the end \\"""
ends = """two quotes more"""""
end = """one quote more""""
raw = @@@
[again] ' '' "
\@@@
literal = @@@two more@@@''
single = @@@one more@@@'
list = [
  1, # one
  "]", [ "[", ]
  ,
]
inline = { a = 1, "b c" = { d = [ { e = 1 }, { f = 2 } ] }, g.h = 4 }
empty = {}

[table]
key = 1

[table.below . deeper]   # a remark
key = [[1], [2]]

[[several]]
name = 1
[several.sub]
x = 1
[[several]]
name = 2
[several.sub]
x = 2
["quoted.dots"]
last = -inf'''.replace("@@@", "'''")


def paths(value: object, at: Path = ()) -> set[Path]:
    """Every key path that tomllib read, those in lists without an index."""
    if isinstance(value, dict):
        below = [paths(each, (*at, name)) for name, each in value.items()]
        return set().union({at} if at else set(), *below)
    if isinstance(value, list):
        return set().union({at}, *(paths(each, at) for each in value))
    return {at}


def test_a_tricky_file_is_read_as_tomllib_reads_it() -> None:
    assert locate_keys(TRICKY).paths() == paths(tomllib.loads(TRICKY))
    assert locate_keys(TRICKY).twice == []


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        (("top",), "top ="),
        (("quoted key",), '"quoted key"'),
        (("single \\n",), "'single"),
        (("esc\té😀",), '"esc'),
        (("dotted",), "dotted . "),
        (("dotted", "in the", "middle"), "dotted . "),
        (("dotted", "also"), "dotted.also"),
        (("",), '""'),
        (("text",), "text ="),
        (("raw",), "raw ="),
        (("single",), "single ="),
        (("list",), "list ="),
        (("inline", "b c", "d", "f"), "inline ="),
        (("table",), "[table]"),
        (("table", "key"), "key = 1"),
        (("table", "below", "deeper"), "[table.below"),
        (("table", "below", "deeper", "key"), "key = [["),
        (("several",), "[[several]]"),
        (("quoted.dots", "last"), "last ="),
        (("table", "missing"), "[table]"),
        (("missing", "too"), "# a remark"),
    ],
)
def test_each_key_is_found_in_its_line(path: Path, begins: str) -> None:
    assert TRICKY.splitlines()[locate_keys(TRICKY).of(path) - 1].startswith(begins)


def test_windows_lines_and_tabs() -> None:
    lines = locate_keys("a = 1\r\n\r\n[b]\r\n\tc = [\r\n\t1]\r\n\td = 'x'\r\n")
    assert [lines.of(path) for path in [("a",), ("b",), ("b", "c"), ("b", "d")]] == [1, 3, 4, 6]


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb = 2\na = 3\n", ("a",), 3),
        ("[s]\na = 1\n[t]\n[s]\n", ("s",), 4),
        ("[s]\n'a' = '''\n\n'''\na = 3", ("s", "a"), 5),
        ("a.b = 1\na = 2", ("a",), 2),
        ("[s]\na = 1\n[s.a]\nb = 2", ("s", "a"), 3),
        ("t = {\ta = 1, a = 2 }", ("t", "a"), 1),
    ],
)
def test_what_is_written_twice_is_found(text: str, path: Path, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    assert locate_keys(text).twice[0] == (path, line)


@pytest.mark.parametrize(
    "text",
    ["[a.b]\n[a]\n", "[[a]]\nx=1\n[[a]]\nx=1", "l = [{a=1}, {a=2}]", "a.b = 1\na.c = 2", "[[a]]\n[a.b]\n[[a]]\n[a.b]"],
)
def test_what_may_stand_twice_is_no_mistake(text: str) -> None:
    tomllib.loads(text)
    assert locate_keys(text).twice == []


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a =",
        "[a",
        "[[a]",
        "a = [1",
        "a = {b = 1",
        "= 1",
        "a = ]",
        'a = "x',
        'a = """x',
        "a = {1}",
        "[]",
        "a = {b}",
    ],
)
def test_a_broken_text_ends_the_search_quietly(text: str) -> None:
    assert locate_keys("first = 1\n" + text).of(("first",)) == 1


def test_a_long_nested_text_takes_no_long_way() -> None:
    assert locate_keys("a = " + "[" * 50_000 + "]" * 50_000 + "\nb = 1").of(("b",)) == 2


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=6) | st.sampled_from("abc")
values = st.recursive(
    st.sampled_from(["1", '"#]["', "'''\n]\n'''", '"""\na = 1\n"""', "true", "1979-05-27 07:32:00", "[]", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: "[" + ",\n ".join(parts) + "]")
        | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3).map(
            lambda parts: "{" + ", ".join(f"{name} = {value}" for name, value in parts.items()) + "}"
        )
    ),
    max_leaves=6,
)


def spelled(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(names, st.dictionaries(names, values, max_size=3), max_size=3), st.integers(0, 2))
def test_any_text_is_read_as_tomllib_reads_it(tables: dict[str, dict[str, str]], gap: int) -> None:
    lines = ["# first"]
    where: dict[Path, int] = {}
    for table, keys in tables.items():
        where[table,] = len(lines) + 1
        lines.append(f"[{spelled(table)}] # {table!a}")
        for name, value in keys.items():
            where[table, name] = len(lines) + 1
            lines += f"{spelled(name)} = {value}".split("\n") + ["\t"] * gap
    text = "\n".join(lines)
    found = locate_keys(text)
    assert found.paths() == paths(tomllib.loads(text))
    assert {path: found.of(path) for path in where} == where


def test_elements_of_lists_have_lines_of_their_own() -> None:
    lines = locate_keys(
        'a = ["x", "y",\n  # "z",\n  "]", [1,\n 2],\n\n {b = [3,\n 4]},\n 5\n,]\nc = ["""\n""",\n"x"]\ne = []\nf = 1'
    )
    assert [lines.of(("a",), number) for number in range(7)] == [1, 1, 3, 3, 6, 8, 1]
    assert [lines.of(("a", "b"), number) for number in range(2)] == [6, 7]
    assert [lines.of(("c",), number) for number in range(3)] == [10, 12, 10]
    assert (lines.of(("e",), 0), lines.of(("f",), 0), lines.of(("none",), 0)) == (13, 14, 1)

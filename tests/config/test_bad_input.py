"""From one complete good configuration: every key of every file made wrong in turn is told with its file and line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.decode import TomlFile, declared_fields, decode_section, field_type
from orchestrator.config.load import load_configuration
from orchestrator.config.models import SECTIONS, JobKeys
from orchestrator.config.parse_job import parse_hooks
from orchestrator.config.schema import example_of
from orchestrator.domain.fast_dataclass import MISSING, Field, dataclass
from orchestrator.domain.job import EVENTS, config_key
from tests.config.given import ENGINES, FILES, refusal, told, written

WRONG = [
    "1979-05-27",
    "{ a = 1 }",
    "[{ a = 1 }]",
    "[[[]]]",
    "''",
    "[1]",
    '"\\u0000"',
    "nan",
    "true",
    "-7",
    '"7 parsecs"',
]
FITS: dict[type[Any], set[str]] = {bool: {"true"}, float: {"-7"}, str: set(), tuple: set(), int: set()}  # right ones


def keys() -> Iterator[tuple[str, int, str, str]]:
    """Each key of the good files: file, line, dotted name, and the whole of what is written for it."""
    for file, text in FILES.items():
        table = ""
        for line in re.finditer(r"^(?:\[([a-z.]+)\]|([a-z-]+) = (?:\[\n[^]]*\]|.*))$", text, re.MULTILINE):
            table = f"{line[1]}." if line[1] else table
            if line[2]:
                yield file, text.count("\n", 0, line.start()) + 1, table + line[2], line[0]


KEYS = list(keys())


def without(file: str, line: int, old: str, new: str) -> dict[str, str]:
    """The good files, with the key that stands in this line written in another way."""
    before = FILES[file].split("\n", line - 1)
    assert before[-1].startswith(old)
    return FILES | {file: "\n".join([*before[:-1], new + before[-1][len(old) :]])}


def right(name: str, value: str) -> bool:
    """Return whether one of the wrong values is right for this key after all."""
    section, _, last = name.partition(".")
    models = {**SECTIONS, **{name: engine.options for name, engine in ENGINES.items()}}
    if name == "priority":
        return value == "-7"
    if section not in models:
        return section == "hooks" and last != "timeout" and value == '"7 parsecs"'
    field = declared_fields(models[section])[last]
    return value in FITS[field_type(field)] or (last in ("label", "use") and value == '"7 parsecs"')


def test_the_good_configuration_is_good_and_complete(tmp_path: Path) -> None:
    configuration = load_configuration(written(tmp_path, FILES), ENGINES)
    assert [job.name for job in configuration.jobs] == ["disk", "mail", "photos", "tank"]
    names = {name for _, _, name, _ in KEYS}
    assert names >= set(declared_fields(JobKeys)) - {"sources"}  # which is in place of source
    sections: dict[str, type[Any]] = {**SECTIONS, **{name: engine.options for name, engine in ENGINES.items()}}
    assert names >= {f"{section}.{name}" for section, model in sections.items() for name in declared_fields(model)}
    assert names >= {f"hooks.{event}" for event in (*EVENTS, "timeout")}


@pytest.mark.parametrize(("file", "line", "name", "old"), KEYS, ids=[f"{file}:{name}" for file, _, name, _ in KEYS])
def test_a_wrong_value_is_told(tmp_path: Path, file: str, line: int, name: str, old: str) -> None:
    last = name.rpartition(".")[2]
    for number, value in enumerate(WRONG):
        if right(name, value):
            continue
        directory = written(tmp_path / str(number), without(file, line, old, f"{last} = {value}"))
        expected = f"{Path(file).name}:{line}:{name}"
        assert expected in told(refusal(directory)), value


@pytest.mark.parametrize(("file", "line", "name", "old"), KEYS, ids=[f"{file}:{name}" for file, _, name, _ in KEYS])
def test_a_wrong_name_is_told(tmp_path: Path, file: str, line: int, name: str, old: str) -> None:
    table, dot, last = name.rpartition(".")
    for number, typo in enumerate((last + "x", last.upper() + "_", "z" + last[1:] + "-q", last[:-1] + "-")):
        changed = typo + old[len(last) :]
        found = refusal(written(tmp_path / str(number), without(file, line, old, changed)))
        assert f"{Path(file).name}:{line}:{table}{dot}{typo}" in told(found)
        (typed,) = [mistake for mistake in found if mistake.key == table + dot + typo]
        assert number != 0 or f'"{last}", the nearest name' in typed.expected


@pytest.mark.parametrize(("file", "line", "name", "old"), KEYS, ids=[f"{file}:{name}" for file, _, name, _ in KEYS])
def test_a_key_twice_is_told(tmp_path: Path, file: str, line: int, name: str, old: str) -> None:
    found = refusal(written(tmp_path, without(file, line, old, f"{old}\n{old}")))
    assert f"{Path(file).name}:{line + old.count(chr(10)) + 1}:{name}" in told(found)


@pytest.mark.parametrize(("file", "line", "name", "old"), KEYS, ids=[f"{file}:{name}" for file, _, name, _ in KEYS])
def test_a_value_that_is_cut_is_told(tmp_path: Path, file: str, line: int, name: str, old: str) -> None:
    cut = name.rpartition(".")[2] + ' = "'
    found = refusal(written(tmp_path, without(file, line, old, cut)))
    assert f"{Path(file).name}:{line}:" in told(found)


REQUIRED = [entry for entry in KEYS if entry[2] in ("engine", "source", "target", "sets.label") or "place." in entry[2]]


@pytest.mark.parametrize(("file", "line", "name", "old"), REQUIRED)
def test_a_required_key_that_is_missing_is_told(tmp_path: Path, file: str, line: int, name: str, old: str) -> None:
    found = refusal(written(tmp_path, without(file, line, old, "")))
    header = line - 1 if "." in name else 1
    told_as = name.rpartition(".")[0] if name.startswith("place.") else name
    assert f"{Path(file).name}:{header}:{told_as}" in told(found)


def examples() -> Iterator[tuple[type[Any], str, "Field[Any]"]]:
    models: list[type[Any]] = [JobKeys, *SECTIONS.values(), *(engine.options for engine in ENGINES.values())]
    for model in models:
        for name, field in declared_fields(model).items():
            yield model, name, field


@pytest.mark.parametrize(("model", "name", "field"), list(examples()))
def test_each_example_is_good(model: type[Any], name: str, field: "Field[Any]") -> None:
    toml_file = TomlFile("x", "", {})
    required = {key: example_of(other) for key, other in declared_fields(model).items() if other.default is MISSING}
    assert decode_section(toml_file, model, required | {name: example_of(field)}, (), lambda _: None)
    assert toml_file.mistakes == []


def test_a_key_of_a_kind_nobody_can_write_is_an_error_of_the_program() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Model:
        odd: bytes = config_key("x")

    with pytest.raises(TypeError, match="needs a parse"):
        decode_section(TomlFile("x", "", {}), Model, {"odd": 1}, (), lambda _: None)


def test_hooks_of_all_shapes() -> None:
    toml_file = TomlFile("x", "", {})
    hooks = parse_hooks(toml_file, {"late": "/a", "done": ["/b", "c"], "failed": [["/d"], ["/e", ""]]})
    assert toml_file.mistakes == []
    assert hooks.of("failed") == (("/d",), ("/e", ""))
    assert (hooks.of("late"), hooks.of("done"), hooks.of("before")) == ((("/a",),), (("/b", "c"),), ())

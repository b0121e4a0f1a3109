"""The JSON Schemas: of the right form, complete, and of one mind with the loader."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.decode import declared_fields
from orchestrator.config.models import SECTIONS, JobKeys
from orchestrator.config.schema import Schema, job_schema, make_schemas, targets_schema
from orchestrator.domain.job import EVENTS
from tests.config.given import ENGINES, FILES
from tests.config.schema import TYPES, fits

KEYWORDS = {
    "$schema", "title", "description", "type", "properties", "required", "additionalProperties", "propertyNames",
    "minProperties", "items", "minItems", "enum", "minimum", "pattern", "default", "examples", "anyOf", "oneOf",
    "allOf", "not", "if", "then", "const",
}  # fmt: skip


def inner(schema: Any) -> Iterator[Schema]:
    """A schema and all schemas in it."""
    if isinstance(schema, dict):
        yield schema
        below = [schema.get(name) for name in ("items", "additionalProperties", "propertyNames", "not", "if", "then")]
        lists = [each for name in ("anyOf", "oneOf", "allOf") for each in schema.get(name, [])]
        for each in (*below, *lists, *schema.get("properties", {}).values()):
            yield from inner(each)


def tables() -> dict[str, dict[str, Any]]:
    return {file: tomllib.loads(text) for file, text in FILES.items()}


def schema_of(file: str) -> Schema:
    return targets_schema() if file == "targets.toml" else job_schema(ENGINES)


def test_it_is_json_of_the_known_keywords_and_types() -> None:
    for schema in make_schemas(ENGINES).values():
        assert json.loads(json.dumps(schema)) == schema
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        for each in inner(schema):
            assert each.keys() <= KEYWORDS
            types = each.get("type", [])
            assert {types} if isinstance(types, str) else set(types) <= TYPES.keys()
            re.compile(each.get("pattern", ""))
            known = each.get("properties")
            assert known is None or set(each.get("required", [])) <= known.keys()


def test_every_declared_key_is_in_it() -> None:
    properties = job_schema(ENGINES)["properties"]
    sections = {**SECTIONS, **{name: engine.options for name, engine in ENGINES.items()}}
    assert properties.keys() == {*declared_fields(JobKeys), *sections, "hooks"}
    for name, model in sections.items():
        assert properties[name]["properties"].keys() == declared_fields(model).keys()
    assert properties["hooks"]["properties"].keys() == {*EVENTS, "timeout"}


def test_every_key_has_a_description_and_an_example_and_fits_itself() -> None:
    for schema in make_schemas(ENGINES).values():
        for table in inner(schema):
            for name, each in table.get("properties", {}).items() if table.get("additionalProperties") is False else ():
                assert each["description"], name
                if each["type" if "type" in each else "anyOf"] != "object":
                    assert each["examples"], name
                    assert all(fits(each, example) for example in each["examples"]), name
                    assert "default" not in each or fits(each, each["default"]), name


@pytest.mark.parametrize(
    ("path", "default"),
    [
        (("pipe", "stall-after"), "5m"), (("guard", "max-deleted"), "50%"), (("retry", "wait"), "30s"),
        (("tree", "block"), "64K"), (("tree", "delete"), False), (("tree", "kinds"), ["file", "link"]),
        (("keep", "daily"), 0), (("hooks", "timeout"), "1m"),
    ],
)  # fmt: skip
def test_defaults_are_told_as_people_write_them(path: tuple[str, str], default: object) -> None:
    assert job_schema(ENGINES)["properties"][path[0]]["properties"][path[1]]["default"] == default


@pytest.mark.parametrize("file", FILES)
def test_good_files_fit(file: str) -> None:
    assert fits(schema_of(file), tables()[file])


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("jobs/photos.toml", {"engine": "sets"}), ("jobs/photos.toml", {"engine": "other"}),
        ("jobs/photos.toml", {"every": "15m"}), ("jobs/photos.toml", {"colour": 1}),
        ("jobs/photos.toml", {"sets": {"label": "x"}}), ("jobs/photos.toml", {"keep": {"daily": -1}}),
        ("jobs/photos.toml", {"verify": {"workers": 0}}), ("jobs/photos.toml", {"keep": {"daily": True}}),
        ("jobs/photos.toml", {"verify": {"digest": "md5"}}),
        ("jobs/photos.toml", {"verify": {"every": 7}}), ("jobs/photos.toml", {"hooks": {"done": [1]}}),
        ("jobs/photos.toml", {"tree": {"excludes": "x"}}), ("jobs/photos.toml", {"source": " "}),
        ("targets.toml", {"place": {}}), ("targets.toml", {"place": {"x y": {"path": "/x"}}}),
        ("targets.toml", {"place": {"x": {"path": "/x", "dataset": "x"}}}), ("targets.toml", {"place": {"x": {}}}),
        ("targets.toml", {"set": {}}),
    ],
)  # fmt: skip
def test_bad_files_do_not_fit(file: str, change: dict[str, Any]) -> None:
    assert not fits(schema_of(file), tables()[file] | change)


def test_a_number_fits_where_the_loader_takes_one() -> None:
    job = tables()["jobs/photos.toml"]
    assert fits(job_schema(ENGINES), job | {"guard": {"max-deleted": 200}, "pipe": {"rate-limit": 5}})


def test_the_published_file_names() -> None:
    assert list(make_schemas(ENGINES)) == ["jobs/*.toml", "targets.toml", "poolferry.toml"]
    assert Path("jobs/photos.toml").match("jobs/*.toml")

"""JSON Schemas (draft 2020-12) of the files, for editors, from the same declarations that check the files."""

import json
from collections.abc import Iterable, Mapping
from datetime import time
from typing import Any

from orchestrator.config.channels import CHANNEL_TYPE_HELP
from orchestrator.config.decode import declared_fields, field_type
from orchestrator.config.machine import SECTIONS as MACHINE
from orchestrator.config.models import SCHEDULE_KEYS, SECTIONS, EngineSection, JobKeys, PlaceKeys
from orchestrator.config.parse_job import EVENT_HELP, TIMEOUT_HELP
from orchestrator.config.sets import IDENTITY
from orchestrator.config.sets import SECTIONS as ROTATION
from orchestrator.domain.fast_dataclass import MISSING, Field
from orchestrator.domain.job import EVENTS, ConfigKey, JobHooks, Limit
from orchestrator.domain.names import JOB_NAME
from orchestrator.domain.notice import CHANNEL_TYPES
from orchestrator.domain.units import Bytes

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", tuple: "array"}
_TEXT: Schema = {"type": "string", "pattern": r"\S"}
_SAMPLES: dict[type[Any], object] = {int: 4, float: 1.5, bool: True, tuple: ["one", "two"], str: "text"}


def make_schemas(engines: Mapping[str, EngineSection]) -> dict[str, Schema]:
    """Return the schema of each kind of file, by its file name."""
    return {"jobs/*.toml": job_schema(engines), "targets.toml": targets_schema(), "poolferry.toml": machine_schema()}


def job_schema(engines: Mapping[str, EngineSection]) -> Schema:
    """Build the schema of a job file. Checks across all files are left to `poolferry check`."""
    head = _table(JobKeys, "A job of poolferry: one source that is carried to one target.")
    head["properties"]["engine"]["enum"] = sorted(engines)
    head["properties"]["engine"]["examples"] = sorted(engines)
    head["properties"] |= {name: _table(model, _first_line(model)) for name, model in SECTIONS.items()}
    head["properties"] |= {
        name: _table(engine.options, _first_line(engine.options)) for name, engine in engines.items()
    }
    head["properties"]["hooks"] = _hooks()
    one = [{"required": [key]} for key in SCHEDULE_KEYS]
    head["oneOf"] = [*one, {"not": {"anyOf": one}}]
    named: Schema = {"oneOf": [{"required": ["source"]}, {"required": ["sources"]}]}
    head["allOf"] = [named, *(_only(engine, engines) for engine in engines.values())]
    return {"$schema": DRAFT, "title": "poolferry job", **head}


def targets_schema() -> Schema:
    """Build the schema of targets.toml."""
    place = _table(PlaceKeys, "A place that one job keeps its copies in.")
    place["oneOf"] = [{"required": [key]} for key in declared_fields(PlaceKeys)]
    named = {"propertyNames": {"pattern": f"^{JOB_NAME.pattern}$"}, "minProperties": 1}
    kinds = {name: _table(model, _first_line(model)) for name, model in ROTATION.items()}
    kinds["disk"]["properties"]["identity"]["pattern"] = IDENTITY
    kinds["disk"]["properties"]["inside"]["pattern"] = IDENTITY
    return {
        "$schema": DRAFT,
        "title": "poolferry targets",
        "description": "The places that jobs carry their data to.",
        "type": "object",
        "properties": {
            "place": {
                "type": "object",
                "description": "Places by name, each as [place.NAME].",
                "propertyNames": {"pattern": f"^{JOB_NAME.pattern}$"},
                "additionalProperties": place,
                "minProperties": 1,
            },
            "set": {
                "type": "object", "description": "Rotation sets by name, each as [set.NAME].", **named,
                "additionalProperties": kinds["set"],
            },
            "disk": {
                "type": "object", "description": "Enrolled disks by name, each as [disk.NAME].", **named,
                "additionalProperties": kinds["disk"],
            },
        },
        "anyOf": [{"required": ["place"]}, {"required": ["set"]}],
        "additionalProperties": False,
    }  # fmt: skip


def machine_schema() -> Schema:
    """Build the schema of poolferry.toml."""
    return {
        "$schema": DRAFT,
        "title": "poolferry machine",
        "description": "What holds for the whole machine.",
        "type": "object",
        "properties": {
            **{name: _table(model, _first_line(model)) for name, model in MACHINE.items()},
            "notice": {
                "type": "object",
                "description": "The channels for notices, by name, each as [notice.NAME].",
                "propertyNames": {"pattern": f"^{JOB_NAME.pattern}$"},
                "additionalProperties": {"oneOf": [_channel(kind) for kind in CHANNEL_TYPES]},
            },
        },
        "additionalProperties": False,
    }


def _channel(kind: str) -> Schema:
    table = _table(CHANNEL_TYPES[kind], _first_line(CHANNEL_TYPES[kind]))
    named: Schema = {"description": CHANNEL_TYPE_HELP, "type": "string", "const": kind, "examples": [kind]}
    return {
        **table,
        "properties": {"kind": named, **table["properties"]},
        "required": ["kind", *table.get("required", [])],
    }


def written_default(field: "Field[Any]") -> object:
    """Return a key's default as a person would write it; None when there is none to write."""
    rule: ConfigKey = field.metadata["key"]
    value = field.default
    if value is MISSING or value is None:
        return None
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Limit):
        return str(value)
    if isinstance(value, time):
        return f"{value:%H:%M}"
    if rule.parse and isinstance(value, int | float):
        return _measure(float(value), size=field.type is Bytes)
    return value


def example_of(field: "Field[Any]") -> object:
    """Return a value that this key accepts: the declared example, else one that fits its kind."""
    rule: ConfigKey = field.metadata["key"]
    kind = field_type(field)
    if rule.example:
        return rule.example if kind is str else json.loads(rule.example)
    if rule.choices:
        return [rule.choices[0]] if kind is tuple else rule.choices[0]
    return written_default(field) or _SAMPLES[kind]


def _measure(number: float, *, size: bool) -> str:
    """Return bytes or seconds in the largest unit that leaves a whole number."""
    units = (("G", 1024**3), ("M", 1024**2), ("K", 1024)) if size else (("d", 86400), ("h", 3600), ("m", 60))
    letter, unit = next((each for each in units if number and number % each[1] == 0), ("" if size else "s", 1))
    return f"{number / unit:g}{letter}"


def _table(model: type[Any], says: str) -> Schema:
    fields = declared_fields(model)
    required = [name for name, field in fields.items() if field.default is MISSING]
    return {
        "description": says,
        "type": "object",
        "properties": {name: _key(field) for name, field in fields.items()},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _key(field: "Field[Any]") -> Schema:
    rule: ConfigKey = field.metadata["key"]
    kind = field_type(field)
    single: Schema = _TEXT if kind in (str, tuple) else {"type": _TYPES[kind]}
    if rule.parse and _takes_numbers(rule):
        single = {"type": ["string", "number"], "pattern": r"\S"}
    if rule.choices:
        single = {"type": "string", "enum": list(rule.choices)}
    if rule.least is not None:
        single = single | {"minimum": rule.least}
    shape = {"type": "array", "items": single} if kind is tuple else single
    default = written_default(field)
    told = {"default": default} if default is not None else {}
    return {"description": rule.says, **shape, **told, "examples": [example_of(field)]}


def _takes_numbers(rule: ConfigKey) -> bool:
    try:
        return rule.parse is not None and bool(rule.parse("7") or True)
    except ValueError:
        return False


def _hooks() -> Schema:
    argv = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    calls = [_TEXT, argv, {"type": "array", "items": argv, "minItems": 1}]
    events: Schema = {
        event: {"description": EVENT_HELP, "anyOf": calls, "examples": [["/usr/local/bin/tell", event]]}
        for event in EVENTS
    }
    timeout = _measure(float(JobHooks().timeout), size=False)
    events["timeout"] = {"description": TIMEOUT_HELP, **_TEXT, "default": timeout, "examples": ["5m"]}
    return {
        "description": "Executables to call.",
        "type": "object",
        "properties": events,
        "additionalProperties": False,
    }


def _only(engine: EngineSection, engines: Iterable[str]) -> Schema:
    """Build the rule that a job of this engine has no other engine's section, and no key that this engine ignores."""
    without: Schema = {other: False for other in engines if other != engine.name}
    for name in engine.without:
        section, _, key = name.partition(".")
        if key:
            without.setdefault(section, {"properties": {}})["properties"][key] = False
        else:
            without[section] = False
    return {"if": {"properties": {"engine": {"const": engine.name}}}, "then": {"properties": without}}


def _first_line(model: type[Any]) -> str:
    return (model.__doc__ or "").strip().partition("\n")[0]

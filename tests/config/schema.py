"""JSON Schema for tests: whether a value fits one."""

import re
from typing import Any

from orchestrator.config.schema import Schema

TYPES = {"string": str, "integer": int, "number": int | float, "boolean": bool, "array": list, "object": dict}


def fits(schema: Any, value: Any) -> bool:
    """Return whether a value fits a schema: the keywords that ours use, as draft 2020-12 has them."""
    if isinstance(schema, bool):
        return schema
    types = schema.get("type", list(TYPES))
    known = [TYPES[name] for name in ([types] if isinstance(types, str) else types)]
    if not any(isinstance(value, kind) and (kind is bool or not isinstance(value, bool)) for kind in known):
        return False
    plain = [
        "enum" not in schema or value in schema["enum"],
        "const" not in schema or value == schema["const"],
        not isinstance(value, str) or bool(re.search(schema.get("pattern", ""), value)),
        isinstance(value, bool) or not isinstance(value, int | float) or value >= schema.get("minimum", value),
        all(fits(each, value) for each in schema.get("allOf", [])),
        "anyOf" not in schema or any(fits(each, value) for each in schema["anyOf"]),
        "oneOf" not in schema or sum(fits(each, value) for each in schema["oneOf"]) == 1,
        "not" not in schema or not fits(schema["not"], value),
        "if" not in schema or not fits(schema["if"], value) or fits(schema["then"], value),
    ]
    return all(plain) and holds(schema, value)


def holds(schema: Schema, value: Any) -> bool:
    """The keywords for what is in lists and tables."""
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(fits(schema.get("items", True), each) for each in value)
    if not isinstance(value, dict):
        return True
    known = schema.get("properties", {})
    return (
        all(name in value for name in schema.get("required", []))
        and len(value) >= schema.get("minProperties", 0)
        and all(fits(schema.get("propertyNames", True), name) for name in value)
        and all(fits(known.get(name, schema.get("additionalProperties", True)), each) for name, each in value.items())
    )

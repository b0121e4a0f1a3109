"""Keys of our JSON by their former names, beside today's, for one version: scripts read them."""

from typing import Any

_FORMER = {
    "hint": "cure",
    "action": "does",
    "confirmed": "proved",
    "due": "owed",
    "due_since": "owed_since",
    "last_output": "last_words",
    "requested": "asked",
    "newest_verified": "newest_proved",
    "verified_at": "proved",
    "confirmation": "proof",
    "self_test": "proves",
    "worker": "lane",
}


def with_former_keys(value: Any) -> Any:
    """Return the value with each renamed key under its former name too, at any depth."""
    if isinstance(value, dict):
        found = {name: with_former_keys(each) for name, each in value.items()}
        return found | {old: found[new] for new, old in _FORMER.items() if new in found and old not in found}
    if isinstance(value, (list, tuple)):
        return [with_former_keys(each) for each in value]
    return value

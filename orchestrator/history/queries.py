"""The text of every statement, by its name: read once from queries.sql, where each begins with `-- name: its_name`.

Reads.
"""

import functools
import os
import re

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@functools.cache
def queries() -> dict[str, str]:
    """All statements of queries.sql."""
    with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as file:
        parts = _NAME.split(file.read())
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}

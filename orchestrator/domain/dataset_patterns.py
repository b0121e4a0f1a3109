"""Mistakes in patterns of datasets and snapshots: those that fit no name at all."""

import re
from collections.abc import Iterable, Iterator

from orchestrator.domain.names import show_name

_SET = re.compile(r"\[[!]?\]?[^\]]*\]")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.: %*?/-]")


def find_dataset_mistakes(patterns: Iterable[str], source: str) -> Iterator[tuple[int, str, str]]:
    """Yield (number, mistake, expected pattern) for each pattern of datasets below a source that fits none. `source`: its whole name."""
    for number, pattern in enumerate(patterns):
        bare = re.sub(r"/+", "/", pattern.strip("/"))
        below = bare.removeprefix(f"{source}/")
        if pattern.strip("/") == source:
            meant = f"{_quoted(f'[{bare[0]}]{bare[1:]}')} for {show_name(source)}/{show_name(bare)}"
            yield number, f"{_quoted(pattern)} is the source itself, which is not left out", f"names below it; {meant}"
        elif below != bare:
            meant = f"[{bare[0]}]{bare[1:]}"
            yield (
                number,
                f"{_quoted(pattern)} is a whole name; datasets are named below {source} here",
                f"{_quoted(below)}; {_quoted(meant)} for {show_name(source)}/{show_name(bare)}",
            )
        elif bare != pattern:
            yield (
                number,
                f'{_quoted(pattern)} fits nothing: no name begins or ends with "/", or has two side by side',
                _quoted(bare) if bare else "a name",
            )
        elif strange := _NO_NAME.search(_SET.sub("", pattern)):
            yield (
                number,
                f"{_quoted(pattern)} fits nothing: no dataset has {_quoted(strange[0])} in its name",
                "a name below the source, with * for any part",
            )


def find_snapshot_mistakes(patterns: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (number, mistake, expected pattern) for each pattern of snapshots that fits none."""
    for number, pattern in enumerate(patterns):
        if "@" in _SET.sub("", pattern):
            name = pattern.rpartition("@")[2]
            yield (
                number,
                f'{_quoted(pattern)} fits nothing: it is for what stands behind the "@"',
                _quoted(name) if name else "a name",
            )
        elif strange := re.search(r"/", pattern) or _NO_NAME.search(_SET.sub("", pattern)):
            yield (
                number,
                f"{_quoted(pattern)} fits nothing: no snapshot has {_quoted(strange[0])} in its name",
                "a name, with * for any part",
            )


def _quoted(text: str) -> str:
    return '"' + show_name(text).replace('"', '\\"') + '"'

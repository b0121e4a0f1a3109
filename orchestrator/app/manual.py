"""Manual pages on this machine: written where man(1) looks, and taken away again."""

import os
import re
from collections.abc import Iterator, Mapping

from orchestrator import compose
from orchestrator.app.config_files import remove_files
from orchestrator.app.metrics import write_whole

USUAL_FOLDER = "/usr/local/share/man"


def install_pages(into: str, pages: Mapping[str, str], *, remove: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the pages, by path below `into`, or remove them; return the paths written and removed. Raises: OSError."""
    paths = {os.path.join(into, name): text for name, text in pages.items()}
    if remove:
        gone = tuple(path for path in paths if os.path.lexists(path))
        remove_files(gone)
        return (), gone
    for path, text in paths.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_whole(path, text.encode())
    return tuple(paths), ()


def documents() -> Iterator[tuple[str, str, str]]:
    """Yield the pages on files and hooks: path below the manual's folder, summary, Markdown. Raises: OrchestratorError."""
    chapters = _chapters(compose.shipped_page("jobs"))
    values, mistakes = chapters["How values are written"], chapters["Messages about mistakes"]
    yield "man5/targets.toml.5", "places and disks that poolferry copies to", f"{chapters['targets.toml']}\n{values}"
    yield "man5/poolferry-jobs.5", "the jobs of poolferry", f"{chapters['jobs/NAME.toml']}\n{values}\n{mistakes}"
    yield (
        "man5/poolferry.toml.5",
        "settings of poolferry for the whole machine",
        f"{chapters['poolferry.toml']}\n{values}",
    )
    hooks = compose.shipped_page("hooks").partition("\n")[2]
    yield "man7/poolferry-hooks.7", "programs that poolferry calls", f"## Description\n{hooks}"


def _chapters(markdown: str) -> dict[str, str]:
    """Return the chapters of a page by their titles; each begins with its heading."""
    parts = re.split(r"^(?=## )", markdown, flags=re.MULTILINE)
    return {part[3:].partition("\n")[0]: part for part in parts if part.startswith("## ")}

"""Manual pages on this machine: written where man(1) looks, and taken away again."""

import os
from collections.abc import Mapping

from orchestrator.app.metrics import write_whole

USUAL_FOLDER = "/usr/local/share/man/man1"


def install_pages(into: str, pages: Mapping[str, str], *, remove: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the pages, by file name, or remove them; return the paths written and removed. Raises: OSError."""
    paths = {os.path.join(into, name): text for name, text in pages.items()}
    if remove:
        gone = tuple(path for path in paths if os.path.lexists(path))
        for path in gone:
            os.unlink(path)
        return (), gone
    os.makedirs(into, exist_ok=True)
    for path, text in paths.items():
        write_whole(path, text.encode())
    return tuple(paths), ()

"""Lists of what no job copies, as lines and as JSON."""

from collections.abc import Sequence
from typing import Any

from orchestrator.domain.names import show_name
from orchestrator.domain.units import show_count


def uncovered_lines(datasets: Sequence[str], folders: Sequence[str], trouble: str) -> list[str]:
    """Render what no job copies for people."""
    lines = [f"  dataset  {each}" for each in datasets] + [f"  folder   {show_name(each)}" for each in folders]
    counts = ((len(datasets), "dataset"), (len(folders), "folder"))
    head = (
        f"no job copies {' and '.join(show_count(*each) for each in counts if each[0])} beside the sources:"
        if lines
        else "all folders beside the sources are copied"
        if trouble
        else "all datasets of the sources' pools, and all folders beside the sources, are copied"
    )
    return [head, *lines, *([f"datasets could not be listed: {trouble}"] if trouble else [])]


def uncovered_value(datasets: Sequence[str], folders: Sequence[str], trouble: str) -> dict[str, Any]:
    """Render the same for programs."""
    return {"datasets": list(datasets), "folders": [show_name(each) for each in folders], "trouble": trouble or None}

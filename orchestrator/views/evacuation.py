"""The end of an evacuation: each job of the pool with what is whole elsewhere now, and what is not."""

from collections.abc import Sequence

from orchestrator.domain.command_line import quoted
from orchestrator.domain.evacuation import JobEvacuation
from orchestrator.domain.names import printable_word
from orchestrator.domain.units import show_count


def evacuation_lines(pool: str, ended: Sequence[JobEvacuation]) -> list[str]:
    """Render how each job ended, those that are not whole last; the last line counts them."""
    whole = sum(each.whole for each in ended)
    return [
        *(_line(each) for each in sorted(ended, key=lambda each: not each.whole)),
        f"what no job copies is not counted: `poolferry restore pool {quoted(pool)} --plan` on this host looks at each dataset",
        f"{whole} of {show_count(len(ended), 'job')} of {pool} {'is' if whole == 1 else 'are'} whole elsewhere; nothing was removed but by the jobs' own rules",
    ]


def _line(each: JobEvacuation) -> str:
    state = f"whole at {each.place}" if each.whole else f"NOT whole at {each.place}"
    return f"{each.job} (of {printable_word(each.source)}): {state}: {printable_word(each.why)}"


def evacuation_value(pool: str, ended: Sequence[JobEvacuation]) -> dict[str, object]:
    """Return the same for a program."""
    jobs = [
        {"job": each.job, "source": each.source, "place": each.place, "whole": each.whole, "why": each.why}
        for each in ended
    ]
    return {"pool": pool, "whole": sum(each.whole for each in ended), "jobs": jobs}

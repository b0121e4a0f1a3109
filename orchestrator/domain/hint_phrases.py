"""Phrases of hints that depend on the command that a person typed: tables of what programs say know neither the job nor the command.

A table writes them as for a run. A restore, a drill and a verification say them in their own words, where each hint leaves a run.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.domain.command_line import quoted

if TYPE_CHECKING:
    from orchestrator.domain.job import Job

FROM_SCRATCH = "start that copy from scratch beside the old one: poolferry run JOB --aside"
WITHOUT_RECORDS = "to copy it all the same, without a bookmark: poolferry run JOB --allow no-bookmarks"
GOES_ON = "what arrived is kept, and the next attempt continues from it"
LOOKS_AGAIN = "the next attempt looks again"
HOLDS_COMMAND = "run the command by hand: `poolferry show RUN` holds it"
# Of a look that is no run, so nothing of it is recorded: its command is among the evidence.
PHRASES_OF_LOOK = {
    HOLDS_COMMAND: "run the command by hand",
    "the whole output is in `poolferry show RUN`": "run the command by hand",
}
EARLIER_WHOLE = "every earlier point is whole"
KEEP_FEWER = "or let [keep] keep fewer points: the next run removes those first, and continues from what is there"
# Of a mirror, which has no points: it is the only copy at its place, and is changed itself.
PHRASES_OF_MIRROR = {
    EARLIER_WHOLE: "the mirror is half written until a run ends well",
    KEEP_FEWER: "or leave out more of the source (excludes in [rsync]): the next run continues from what is there",
}


def phrases_of_restore(typed: str, rename: str) -> Mapping[str, str]:
    """Return what a restore says. `typed`: its command; `rename`: the command that sets aside what it made, "" where none does.

    Why not --aside: what a restore made is its own to go on with, so that option leaves it where it is.
    """
    anew = f"to begin again beside what came back: {rename}, then {typed}" if rename else f"say the same again: {typed}"
    return {
        FROM_SCRATCH: anew,
        WITHOUT_RECORDS: f"then {typed}",
        GOES_ON: f"what arrived is kept, and it continues from it: {typed}",
        LOOKS_AGAIN: f"it looks again: {typed}",
    }


def phrases_of_reader(typed: str) -> Mapping[str, str]:
    """Return what a command says that keeps nothing of what it reads or receives: a drill, a verification. `typed`: its command."""
    anew = f"nothing of it is kept, and it begins anew: {typed}"
    return {
        FROM_SCRATCH: anew,
        WITHOUT_RECORDS: f"then {typed}",
        GOES_ON: anew,
        LOOKS_AGAIN: f"it looks again: {typed}",
    }


def name_hosts(hint: str, job: "Job") -> str:
    """Return a hint in which each host of a job is reached as its runs reach it: with the job's own ssh-options, and in place of HOST.

    Why: without them, such as a key or a file of settings, the command is asked for a password, or ends at another machine.
    """
    hosts = {
        place.host: None
        for place in (job.source, job.target.location)
        if place.host is not None and not place.host.here
    }
    for host in hosts:
        hint = hint.replace("ssh HOST ", f"{host.ssh} ")
        if job.pipe.ssh_options:
            told = host.ssh_with(job.pipe.ssh_options).replace("\\", r"\\")
            hint = re.sub(rf"\b{re.escape(host.ssh)}(?=[ `;,)]|$)", told, hint)
    return hint


def name_disk(hint: str, job: "Job") -> str:
    """Return a hint that says how the pool of a disk is imported, where it holds a command for that pool.

    Why: once its visit has ended the disk is switched off, and who reads the hint would be told that there is no such pool.
    """
    place = job.target
    pool = place.location.path.partition("/")[0]
    if (
        not place.disk
        or not pool
        or "disks attach" in hint
        or not re.search(rf"\bz(?:fs|pool) [^;`]*\b{re.escape(pool)}\b", hint)
    ):
        return hint
    disk = quoted(place.disk)
    return f"{hint}; that pool is imported between `poolferry disks attach {disk}` and `poolferry disks eject {disk}`"


def say_hint(hint: str, phrases: Mapping[str, str]) -> str:
    """Return a hint in the words of the command that was typed."""
    for phrase, words in phrases.items():
        hint = hint.replace(phrase, words)
    return hint

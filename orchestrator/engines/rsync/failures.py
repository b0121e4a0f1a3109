"""rsync's exit codes and last words → what happened, what it means, what to do. Pure.

The exit code alone is never enough: 12 is a broken link, a refused option and a missing program; 23 is everything
from one unreadable file to a target without inodes. So the last words are read first, in the order of the table.
Pure.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.domain.errors import (
    Evidence,
    HostUnreachable,
    NotNow,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    SourceMissing,
    Stalled,
    Stopped,
    StreamBroken,
    TargetFull,
    Unexplained,
)
from orchestrator.engines.contract import LeftOut
from orchestrator.engines.rsync.parse import parse_name
from orchestrator.process.result import Broken

PARTLY = 23
VANISHED = 24
_FULL = r": No space left on device|: Disk quota exceeded"
_UNREADABLE = re.compile(
    rb'(?:send_files failed to open|read errors mapping|opendir|readlink_stat\(|lstat) ?"(.*)"\)?(?: failed)?: (.*) \(\d+\)'
)
_VANISHED = re.compile(rb'(?:file|directory) has vanished: "(.*)"')
_HARMLESS = re.compile(
    rb"|rsync error: some files.*|rsync warning: some files vanished.*|IO error encountered -- skipping file deletion"
    rb"|(?:WARNING|ERROR): .* failed verification -- update (?:discarded|retained|put into partial-dir).*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    words: str
    error: type[OutsideError]
    why: str
    cure: str
    exits: tuple[int, ...] = ()


_RULES = (
    _Rule(
        words=_FULL,
        error=TargetFull,
        why="the target has no room left (space, inodes or quota)",
        cure="free room on the target or let [keep] remove more points; every earlier point is whole, and the next run goes on from what is there",
    ),
    _Rule(
        words=r"Host key verification failed",
        error=PermissionDenied,
        why="the host's key is not the one this machine knows, or it knows none",
        cure="log in once by hand as the user who runs poolferry, and compare the key before accepting it",
    ),
    _Rule(
        words=r"Permission denied \((publickey|password|keyboard|gssapi|hostbased)",
        error=PermissionDenied,
        why="the host refused our login",
        cure="ssh-copy-id to the host, or name the key in [pipe] ssh-options",
    ),
    _Rule(
        words=r"Could not resolve hostname|Name or service not known|Temporary failure in name resolution",
        error=HostUnreachable,
        why="the host's name could not be resolved",
        cure="check the name and this machine's network",
    ),
    _Rule(
        words=(
            r"Connection refused|Connection timed out|No route to host|Network is unreachable|"
            r"Operation timed out|Connection to .* timed out"
        ),
        error=HostUnreachable,
        why="the host did not answer",
        cure="check that the host runs, and sshd on it",
    ),
    _Rule(
        words=(
            r"rsync: (command )?not found|rsync: No such file|exec.*rsync.*No such file|sh: \d+: (rsync|"
            r"flock|find|stat): not found|command not found"
        ),
        error=ProgramMissing,
        why="a program is not installed there",
        cure="apt install rsync util-linux findutils coreutils on that machine",
    ),
    _Rule(
        words=(
            r"unknown option|on remote machine: -|syntax or usage error|requested action not supported|"
            r"No common checksum|disabled on this server"
        ),
        error=ProgramMissing,
        why="the two sides' rsync do not understand each other",
        cure="upgrade the older rsync; `poolferry check --system` names both versions",
        exits=(1, 2, 4, 12),
    ),
    _Rule(
        words=r"protocol version mismatch|is your shell clean",
        error=StreamBroken,
        why="the remote shell prints something before rsync speaks",
        cure="`ssh HOST true` must print nothing: mend the login scripts there",
        exits=(2,),
    ),
    _Rule(
        words=r"Read-only file system",
        error=PermissionDenied,
        why="the target is mounted read-only",
        cure="look at the kernel's messages for a disk error, then mount it writable",
    ),
    _Rule(
        words=r"Input/output error",
        error=OutsideError,
        why="a disk could not be read or written",
        cure="look at the kernel's messages and the disk's health (smartctl -a) before anything else",
    ),
    _Rule(
        words=r'change_dir "[^"]*" failed: No such file|link_stat "[^"]*" failed: No such file',
        error=SourceMissing,
        why="the source is not there",
        cure="mount it, or correct `source` in the job file",
    ),
    _Rule(
        words=r"Permission denied|Operation not permitted",
        error=PermissionDenied,
        why="something may not be read or written by this user",
        cure="run as root, or give this user the rights",
    ),
    _Rule(
        words=(
            r"io timeout after|timeout in data|connection unexpectedly closed|Broken pipe|Connection reset|"
            r"closed by remote host|error in rsync protocol|connection lost"
        ),
        error=StreamBroken,
        why="the transfer broke off in the middle",
        cure="what arrived stays; the next attempt goes on from it",
    ),
)
_BY_EXIT: dict[int, tuple[type[OutsideError], str, str]] = {
    10: (HostUnreachable, "the connection failed", "check the network between both machines"),
    12: (StreamBroken, "the transfer broke off in the middle", "what arrived stays; the next attempt goes on from it"),
    20: (StreamBroken, "rsync was told to end", "what arrived stays; the next attempt goes on from it"),
    30: (Stalled, "nothing moved for too long", "what arrived stays; the next attempt goes on from it"),
    127: (ProgramMissing, "rsync is not installed there", "apt install rsync"),
    137: (StreamBroken, "rsync was killed", "was memory short? (the kernel's messages tell); the next attempt goes on"),
    143: (StreamBroken, "rsync was told to end", "what arrived stays; the next attempt goes on from it"),
    255: (
        HostUnreachable,
        "the connection to the host broke off or could not be made",
        "check the network, and `ssh HOST true` by hand",
    ),
}


def explain(broken: Broken) -> OrchestratorError:
    """The error of the tree that a failed pipeline is. Raises nothing."""
    result, evidence = broken.result, broken.evidence
    if result.stopped == "stalled":
        return Stalled(
            "nothing moved for too long, so the transfer was ended",
            evidence=evidence,
            cure="what arrived stays; the next attempt goes on from it",
        )
    if result.stopped is not None:
        return Stopped("the run was asked to stop")
    words = "\n".join(evidence.last_words)
    code = _code(evidence)
    if code == 75 or "Another instance of rrsync" in words:
        return NotNow(
            "another copy into this target is still alive", cure="it ends by itself, or with the far side's timeout"
        )
    for rule in _RULES:
        if re.search(rule.words, words) and (not rule.exits or code in rule.exits):
            return rule.error(_sentence(rule.why, words, rule.words), evidence=evidence, cure=rule.cure)
    if code in _BY_EXIT:
        error, why, cure = _BY_EXIT[code]
        return error(_sentence(why, words, "."), evidence=evidence, cure=cure)
    said = words.strip().splitlines()
    return Unexplained(
        f"rsync ended with {code}: {said[0] if said else 'no words'}",
        evidence=evidence,
        cure="the whole output is in `poolferry show RUN`",
    )


def _code(evidence: Evidence) -> int | None:
    codes = [code for code in evidence.exits if code]
    code = codes[-1] if codes else None
    return 128 - code if code is not None and code < 0 else code


def _sentence(why: str, words: str, pattern: str) -> str:
    line = next((line.strip() for line in words.splitlines() if re.search(pattern, line)), "")
    return f"{why} ({line})" if line else why


def is_partial(broken: Broken) -> bool:
    """Whether rsync did all it could and only some files were left out."""
    return broken.result.stopped is None and _code(broken.evidence) in (PARTLY, VANISHED)


def left_out(broken: Broken, errors: Iterable[bytes], source: str) -> LeftOut | None:
    """What a copy had to leave out, None when anything else went wrong too: then it has failed."""
    if not is_partial(broken):
        return None
    vanished: list[bytes] = []
    unreadable: dict[bytes, str] = {}
    for line in errors:
        gone, bad = _VANISHED.search(line), _UNREADABLE.search(line)
        if gone:
            vanished.append(_below(gone[1], source))
        elif bad:
            name, why = (part for part in bad.groups() if part is not None)
            unreadable[_below(name, source)] = why.decode(errors="replace")
        elif not _HARMLESS.fullmatch(line.strip()):
            return None
    if not (vanished or unreadable):
        return None
    return LeftOut(unreadable=tuple(unreadable.items()), vanished=tuple(vanished))


def _below(name: bytes, source: str) -> bytes:
    return parse_name(name).removeprefix(source.rstrip("/").encode("utf-8", "surrogateescape") + b"/")

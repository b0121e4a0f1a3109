"""What zpool, zfs and ssh say when a look or a scrub fails → what happened, what it means, what to do."""

import re

from orchestrator.domain.errors import (
    HostUnreachable,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    SourceMissing,
    Stalled,
    Stopped,
    Unexplained,
)
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.process.pipeline import Broken, StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """Fits what was said; where `exits` are told, only with one of these codes."""

    words: str
    exits: tuple[int, ...] = ()
    error: type[OutsideError]
    why: str
    cure: str

    def fits(self, code: int | None, said: str) -> bool:
        return (not self.exits or code in self.exits) and re.search(self.words, said) is not None


_RULES = (
    _Rule(
        words=r"(zpool|zfs): (command )?not found|/dev/zfs|ZFS modules? (is|are|cannot be) (not )?loaded",
        error=ProgramMissing,
        why="ZFS is not there, or its kernel module is not loaded",
        cure="apt install zfsutils-linux zfs-dkms and `modprobe zfs` there",
    ),
    _Rule(
        words=r"cannot open '[^']*': no such pool|no such pool",
        error=SourceMissing,
        why="the pool is not imported",
        cure="`zpool import` tells what can be; or correct the name in the job file",
    ),
    _Rule(
        words=r"cannot scrub \S+: currently (scrubbing|resilvering)|cannot pause scrubbing|there is no active scrub|is currently resilvering",
        error=OutsideError,
        why="somebody else has begun or ended a scan meanwhile",
        cure="the next run looks again",
    ),
    _Rule(
        words=r"I/O is currently suspended|pool is suspended",
        error=OutsideError,
        why="the pool lost its disks and waits for them",
        cure="attach the disks again, then `zpool clear`",
    ),
    _Rule(
        words=r"[Pp]ermission denied \((publickey|password|keyboard|gssapi|hostbased)",
        error=PermissionDenied,
        why="the host refused our login",
        cure="ssh-copy-id to the host, or name the key in [pipe] ssh-options",
    ),
    _Rule(
        words=r"Host key verification failed",
        error=PermissionDenied,
        why="the host's key is not the one this machine knows, or it knows none",
        cure="log in once by hand as the user who runs poolferry, and compare the key before accepting it",
    ),
    _Rule(
        words=r"[Pp]ermission denied|Operation not permitted|must be (super)?user|insufficient privileges",
        error=PermissionDenied,
        why="this user may not do that to the pool",
        cure="run as root: a scrub cannot be delegated with `zfs allow`",
    ),
    _Rule(
        words=r"[Rr]ead-only",
        error=PermissionDenied,
        why="the pool was imported read-only, so it cannot be scrubbed",
        cure="export it and import it again, or leave scrub-every out",
    ),
    _Rule(
        words=r"Could not resolve hostname|Connection (refused|timed out)|No route to host|Network is unreachable",
        error=HostUnreachable,
        why="the host did not answer",
        cure="check its name, that it runs, and sshd on it",
    ),
    _Rule(
        words="",
        exits=(255,),
        error=HostUnreachable,
        why="the connection to the host broke off or could not be made",
        cure="check the network, and `ssh HOST true` by hand",
    ),
)


def explain(broken: Broken) -> OrchestratorError:
    """The error of the tree that a failed look or scrub is. Raises nothing."""
    result, evidence = broken.result, broken.evidence
    match result.stopped:
        case StopReason.STALLED | StopReason.TIMED_OUT:
            why = "zpool or zfs did not answer: the pool may have lost its disks, or one of them hangs"
            return Stalled(why, evidence=evidence, cure="look at `zpool status` there, and at the kernel's messages")
        case StopReason.FLOODED:
            why = "so many files have lost data that the list of them is longer than we hold in memory"
            return OutsideError(why, evidence=evidence, cure="see `zpool status -v` there; restore from a copy")
        case reason if reason is not None:
            return Stopped("the run was asked to stop")
    said = "\n".join(evidence.last_words)
    code = next((code for code in reversed(evidence.exits) if code), None)
    for rule in _RULES:
        if rule.fits(code, said):
            line = _line(said, rule.words or r"\S")
            return rule.error(f"{rule.why} ({line})" if line else rule.why, evidence=evidence, cure=rule.cure)
    words = _line(said, "cannot") or _line(said, r"\S") or "no words"
    return Unexplained(
        f"zpool ended with {code}: {words}",
        evidence=evidence,
        cure="the whole output is in `poolferry show RUN`",
    )


def _line(said: str, words: str) -> str:
    """The first line that holds the words."""
    return next((line.strip() for line in said.splitlines() if re.search(words, line)), "")

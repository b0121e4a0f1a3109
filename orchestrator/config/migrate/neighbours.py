"""Commands around a call in its line: pings, mails and logs, as channels for notices, or listed as lost."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from orchestrator.config.migrate.calls import ProgramCall
from orchestrator.config.migrate.crontab import ScheduledCommand
from orchestrator.config.migrate.result import ImportBuilder, ImportedChannel, Lost
from orchestrator.domain.fast_dataclass import dataclass

_PINGS = ("curl", "wget", "http", "xh")
_MAILS = ("mail", "mailx", "s-nail", "mutt", "bsd-mailx", "sendmail", "msmtp", "swaks")
_QUIET = frozenset("true : exit return wait cd umask trap shift break continue unset shopt local".split())
_GUARDS = frozenset("[ [[ test command which pgrep pidof type hash".split())
_OUTPUT = frozenset("echo printf date cat tee logger ts tail grep sed head awk sort systemd-notify".split())
_MAIL_VALUES = "sraccbSquTfFAeih"
_PART = re.compile(r"/(?:(start|fail|log)|(\$\?|\$\{\?\}|\$[A-Za-z_]\w*|\$\{\w+\}|(?<=[^/]{8}/)[0-9]{1,3}))$")
_WEB = re.compile(r"https?://[^\s\"']+|ntfy\.sh/[^\s\"']+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPing:
    """A ping of one line. `part`: what its address says, "start", "fail", "exit" or ""; `joined`: when it was sent."""

    address: str
    part: str
    joined: str
    before: bool


def tell_neighbours(work: ImportBuilder, calls: Sequence[ProgramCall], at: Sequence[int], jobs: Sequence[str]) -> None:
    """Carry over what a schedule does beside its calls. `at`: the indexes of the calls; `jobs`: the jobs that were made of them."""
    pings: dict[str, list[tuple[str, ImportedPing]]] = {}
    for index, call in enumerate(calls):
        if index in at:
            continue
        job = jobs[0] if len(jobs) == 1 else None
        program = call.program
        if program in _PINGS and (ping := _ping(call, before=index < min(at))):
            pings.setdefault(ping.address, []).append((call.where, ping))
        elif program in _MAILS and (to := _recipients(call)):
            _tell_mail(work, call.where, to, jobs)
        elif text := _rest(call):
            work.say(call.where, text, job)
        for note in call.notes:
            work.say(call.where, note, job)
    for address, found in pings.items():
        _tell_pings(work, address, found, jobs)


def tell_schedule(work: ImportBuilder, scheduled: ScheduledCommand, jobs: Sequence[str]) -> None:
    """Carry over who got cron's mails."""
    to = tuple(each.strip() for each in scheduled.mailto.split(",") if each.strip())
    if to and jobs and not work.notify(ImportedChannel(kind="mail", keys=(("to", to),), jobs=tuple(jobs))):
        work.say(scheduled.where, Lost(f"MAILTO={scheduled.mailto} is not carried over: it is no mail address"))


def _tell_mail(work: ImportBuilder, where: str, to: tuple[str, ...], jobs: Sequence[str]) -> None:
    if not jobs:
        return
    if work.notify(ImportedChannel(kind="mail", keys=(("to", to),), jobs=tuple(jobs))):
        work.say(
            where,
            f"its mail to {', '.join(to)} became a [notice] in poolferry.toml: it tells of trouble, not of each run",
        )
    else:
        work.say(where, Lost(f"its mail to {', '.join(to)} is not carried over: that is no mail address"))


def _tell_pings(
    work: ImportBuilder, address: str, found: Sequence[tuple[str, ImportedPing]], jobs: Sequence[str]
) -> None:
    where, pings = found[0][0], [ping for _, ping in found]
    parts = {ping.part for ping in pings}
    if not jobs:
        return
    host = _host(address)
    if _is_ntfy(address):
        work.notify(ImportedChannel(kind="ntfy", keys=(), secret=address, jobs=tuple(jobs)))
        work.say(
            where, "its message became a [notice] in poolferry.toml, of kind ntfy: it tells of trouble, not of each run"
        )
        return
    watched = bool(parts - {""}) or _watched(address)
    if not watched and all(ping.joined == "||" for ping in pings):
        work.say(
            where,
            Lost(
                f"its call of {host} after a failure is not carried over: write a [notice.NAME] of kind webhook or apprise"
            ),
        )
        return
    keys: list[tuple[str, str]] = [] if watched else [("style", "plain")]
    keys += [("of", "protected")] if len(jobs) > 1 else []
    if not work.notify(ImportedChannel(kind="ping", keys=tuple(keys), secret=address, jobs=tuple(jobs))):
        work.say(where, Lost(f"its ping of {host} is not carried over: the address does not fit into poolferry.toml"))
        return
    work.say(where, f"its ping of {host} became a [notice] in poolferry.toml{_differs(pings, jobs)}")


def _differs(pings: Sequence[ImportedPing], jobs: Sequence[str]) -> str:
    if len(jobs) > 1:
        return f": sent each hour while none of {', '.join(jobs)} is late or failing"
    if not any(ping.part or ping.joined == "&&" for ping in pings):
        return ": it was sent whatever happened, and is now sent when the run ended well"
    return ""


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_ntfy(address: str) -> bool:
    return _host(address) == "ntfy.sh" or _host(address).startswith("ntfy.")


def _watched(address: str) -> bool:
    """Return True for an address of a dead-man switch in the way of healthchecks."""
    host = _host(address)
    return host in ("hc-ping.com", "hchk.io") or "healthchecks" in host or "/ping/" in address


def _ping(call: ProgramCall, *, before: bool) -> ImportedPing | None:
    """Return the ping of a call of curl or wget; None for another use of them."""
    address = next((word for word in call.words if _WEB.fullmatch(word)), None)
    sends = [
        word for word in call.words if re.match(r"--(post-file|upload-file|form|json|data-binary|user)|-[FTu]$", word)
    ]
    if address is None or sends or any("Content-Type" in word or "webhook" in word for word in call.words):
        return None
    address = address if "://" in address else f"https://{address}"
    match = _PART.search(address)
    part = (match[1] or "exit") if match else ""
    bare = address[: match.start()] if match else address
    try:
        path = urlsplit(bare).path
    except ValueError:  # such as [x]: no address, so nothing that was ever pinged
        return None
    if match and match[2] and not path.strip("/"):
        bare = address  # the variable is no exit code: nothing else tells the checks of that host apart
    posts = any(re.match(r"--data|-d|--post-data|-X", word) for word in call.words)
    if "$" in bare or "`" in bare or (posts and not (_watched(bare) or _is_ntfy(bare))):
        return None
    return ImportedPing(address=bare, part=part, joined=call.command.joined, before=before)


def _recipients(call: ProgramCall) -> tuple[str, ...]:
    """Return to whom a mail program sends."""
    found, skip = [], False
    for word in call.words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = len(word) == 2 and word[1] in _MAIL_VALUES and call.program not in ("sendmail", "msmtp")
        else:
            found.append(word)
    return tuple(found)


def _rest(call: ProgramCall) -> str:
    """Return what to say about a command that is neither a ping nor a mail; "" where nothing is lost."""
    program = call.program
    if program in ("", *_QUIET) or (program in _GUARDS and not call.command.inside):
        return ""
    if program in _OUTPUT:
        return f"what {program} does with its output is not needed: `poolferry history` and `poolferry show` have it"
    if program == "sleep":
        return "sleep is not needed: so many runs at once as [clock] parallel says, the others wait"
    shown = " ".join(call.command.words)
    where = f" on {call.host}" if call.host else ""
    return Lost(f"`{shown[:120]}`{where} is not carried over: a program of yours can be a hook, [hooks] before or done")

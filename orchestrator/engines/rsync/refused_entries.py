"""Entries that the target's filesystem does not take: a name, a kind or a size that it has not. They cost no other entry its copy.

Anybody may make one in a folder of hers: a symlink of 3,000 bytes, of which XFS takes 1,024; a name that is no UTF-8, where a filesystem takes
nothing else. rsync names each, and some end it. So the next attempt of the run leaves them out by rules, as if a pattern named them: what
proves that all else is there stays as strict as it is.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from itertools import groupby, takewhile

from orchestrator.domain.errors import EntriesRefused
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_short_name
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.rsync.errors import HARMLESS, below, exit_code, find_links, find_skipped_entries, is_partial
from orchestrator.engines.rsync.left_out import BEGINNING, MOST_LEFT_OUT, OVER_QUOTA, TOO_LARGE
from orchestrator.engines.rsync.model import TEMPORARY
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.parse import parse_moved, parse_name
from orchestrator.process.pipeline import PipelineFailed

_REASONS = {
    b"22": "the target's filesystem does not take it: invalid argument",
    b"27": TOO_LARGE,
    b"36": "its name, or the text of the link, is longer than the target's filesystem takes",
    b"75": "the target's filesystem does not take it: value too large",
    b"122": OVER_QUOTA,
    b"84": "its name is none that the target's filesystem takes",
}
_CODE = rb"(?P<code>22|27|36|75|84)"
_MADE = re.compile(
    rb"rsync: (?:\[(?:generator|receiver)\] )?(?:recv_generator: )?(?:mkdir|mknod|failed to stat|open) "
    rb'"(?P<name>[^\n]*)"(?: failed)?: [^"\n]* \(' + _CODE + rb"\)"
)
# The text of a link may look like the end of its name, and the other way round.
_LINKED = re.compile(rb'rsync: (?:\[generator\] )?(?:sym)?link "(?P<names>[^\n]*) failed: [^"\n]* \(' + _CODE + rb"\)")
_ARROW = re.compile(rb'" (?P<kind>[-=])> "?')
# rsync's temporary files are `.NAME.XXXXXX`, with no more than some 246 bytes of the name; in a folder of their own without the first dot.
_TEMPORARY = re.compile(
    rb'rsync: (?:\[receiver\] )?(?:mkstemp|(?P<owner>chown|chgrp)) "(?P<folder>[^\n]*/)(?P<name>[^\n/]+)\.[A-Za-z0-9]{6}" failed: '
    rb'[^"\n]* \((?P<code>(?(owner)122|(?:22|27|36|75|84)))\)'
)
# Of who is root, a file counts for its owner's quota only once it is given to her: what is written for all others has room.
_GIVEN = re.compile(rb'rsync: \[generator\] (?:chown|chgrp) "(?P<name>[^\n]*)" failed: [^"\n]* \((?P<code>122)\)')
_RENAMED = re.compile(rb'rsync: (?:\[receiver\] )?rename "(?P<names>[^\n]*)"(?: failed)?: [^"\n]* \(' + _CODE + rb"\)")
_TEMPORARY_NAME = re.compile(rb"\.?(?P<base>.+)\.[A-Za-z0-9]{6}", re.DOTALL)
_WRITTEN = re.compile(
    rb'rsync: (?:\[receiver\] )?(?:write failed on|pre-allocating|ftruncate failed on) "(?P<name>[^\n]*)"(?: failed)?: [^"\n]* \('
    rb"(?P<code>27|28|122)\)"
)
_NO_ROOM = (b"28", b"122")
_WITH_IT = re.compile(
    rb"\*\*\* Skipping any contents from this failed directory \*\*\*|rsync error: [^\n]*|rsync: connection unexpectedly closed [^\n]*"
    rb"|rsync: (?:\[\w+\] )?write error: Broken pipe \(32\)"
)
_CUT_NAME, _WHOLE_NAME = 240, 256  # bytes; of a longer one a temporary file may have the beginning alone
_Unsure = tuple[bytes | None, bytes]  # the folder, if it is told, and the name, or its beginning
_ENDED = (11, 12)  # rsync's exit codes where it could not write a file, here or there
_NAMED = 3
_ROOM = 1 << 20  # bytes; with fewer the target itself is full
UNNAMED = "a link that rsync could not name"  # its path and text are longer than a message of rsync
_NAME_THEM = "see `poolferry show RUN`; name them in excludes in [rsync], or copy to a filesystem that takes them"
_MESSAGE_TOO_LONG = 13  # rsync's exit code where a message has more bytes than it can print
_DEEPEST = 100  # folders in each other; of more with many such entries the upper one is left out


def find_refused(
    broken: PipelineFailed, errors: Iterable[bytes], job: Job, into: str, moved: str | None
) -> EntriesRefused | None:
    """Return the error that names what the target did not take; None where something else failed too, or something that is not named.

    `into`: the root of the tree that was written. `moved`: the local file with the copy's output, which has the whole of each name.
    """
    found: dict[bytes, bytes] = {}
    full: dict[bytes, str] = {}
    unsure: dict[_Unsure, bytes] = {}
    rest = list[bytes]()
    for line in map(bytes.strip, errors):
        if (told := _WRITTEN.fullmatch(line)) and told["code"] in _NO_ROOM:
            path = below(told["name"], into)
            full[path] = describe_lack(path, job, into, quota=told["code"] == b"122")
        elif told := _WRITTEN.fullmatch(line) or _MADE.fullmatch(line) or _GIVEN.fullmatch(line):
            found[below(told["name"], into)] = told["code"]
        elif (told := _RENAMED.fullmatch(line)) and (name := _renamed(told["names"], into)) is not None:
            found[name] = told["code"]
        elif told := _LINKED.fullmatch(line):
            found |= dict.fromkeys(_linked_names(told["names"], job, into), told["code"])
        elif told := _TEMPORARY.fullmatch(line):
            folder, name = below(told["folder"], into), parse_name(told["name"])
            apart = folder == TEMPORARY.encode()  # of a mirror: all its temporary files lie in one folder
            if apart or len(name) > _CUT_NAME:
                unsure[None if apart else folder, name if apart else name.removeprefix(b".")] = told["code"]
            else:
                found[b"/".join(filter(None, (folder, name.removeprefix(b"."))))] = told["code"]
        elif not _WITH_IT.fullmatch(line):
            rest.append(line)
    unnamed = broken.result.stopped is None and exit_code(broken) == _MESSAGE_TOO_LONG
    whole = _whole_names(unsure, moved) if unsure else {}
    if not (found or full or unsure or unnamed) or whole is None or b"" in found or "" in full.values():
        return None
    partly = is_partial(broken)
    if not (partly or unnamed) and (broken.result.stopped is not None or exit_code(broken) not in _ENDED):
        return None
    if not all(map(HARMLESS.fullmatch, rest)) and not (partly and find_skipped_entries(broken, rest, job.tree, into)):
        return None
    entries = {name: _REASONS[code] for name, code in {**found, **whole}.items()} | full
    names = [UNNAMED] * unnamed + [show_short_name(name) for name in sorted(entries)[:_NAMED]]
    shown, count = ", ".join(names[:_NAMED]), len(entries) + unnamed
    more = f" and {count - _NAMED} more" if count > _NAMED else ""
    return EntriesRefused(
        f"the target does not take {show_count(count, 'entry', 'entries')}: {shown}{more}",
        evidence=broken.evidence,
        hint=find_links(job.source) if unnamed else _NAME_THEM,
        entries=few_entries(entries, MOST_LEFT_OUT),
        unnamed=unnamed,
    )


def describe_lack(path: bytes, job: Job, into: str, *, quota: bool) -> str:
    """Return why a file that a mirror writes in place had no room; empty where the target may have none at all, or its owner is who writes.

    Why an owner's: what is written in place counts for her at once, all else for who writes. A link is no such file. Where the target is
    far, the source says whose it is; whether others have room the next attempt finds.
    """
    options, far = options_of(job), job.target.location.host
    if options.points or not options.in_place or (far is not None and (far.user not in (None, "root") or not quota)):
        return ""
    root = into if far is None else job.tree.root.path
    try:
        owner = os.lstat(os.path.join(os.fsencode(root), path)).st_uid
        seen = os.statvfs(root)
    except OSError:
        return ""
    left = seen.f_bavail * seen.f_frsize
    if owner in (0, os.geteuid()) or (far is None and left < _ROOM):
        return ""
    whose = f"of its owner (user {owner}) or group, or of the folder it lies in" + (", or of all there" if far else "")
    free = "" if far else f", though {show_size(left)} are free there"
    return (
        f"the target had no room for what was written into it{free}: see a quota {whose}; its copy may be half written"
    )


def _renamed(told: bytes, into: str) -> bytes | None:
    """Return the path that a temporary file was to get; None where no arrow of several stands between two such names."""
    ways = [
        (below(told[: each.start()], into), below(told[each.end() :], into)) for each in re.finditer(b'" -> "', told)
    ]
    if len(ways) == 1:
        return ways[0][1]
    for temporary, name in ways:
        (folder, _, before), (where, _, after) = temporary.rpartition(b"/"), name.rpartition(b"/")
        made = _TEMPORARY_NAME.fullmatch(before)
        if made and after.startswith(made["base"]) and folder in (where, TEMPORARY.encode()):
            return name
    return None


def _linked_names(told: bytes, job: Job, into: str) -> list[bytes]:
    """Return the paths of which one is the link of a message that has its name, an arrow and its text.

    Where either holds more arrows, what lies at the source, or in the copy where the source is far, tells which can be it: else an owner
    could have an entry of another user left out, by a name that begins with the other's in a folder of both.
    """
    arrows = list(_ARROW.finditer(told))
    names = [below(told[: arrow.start()], into) for arrow in arrows]
    if len(names) < 2:
        return names
    far = job.tree.root.host is not None
    root = os.fsencode(into if far else job.tree.root.path)
    left = [
        name
        for name, arrow in zip(names, arrows, strict=True)
        if _may_be_link(
            root, name, parse_name(told[arrow.end() :].removesuffix(b'"')), made=far, hard=arrow["kind"] == b"="
        )
    ]
    return left or names[1:]


def _may_be_link(root: bytes, name: bytes, text: bytes, *, made: bool, hard: bool) -> bool:
    """Return whether an entry may be one that could not be made as a link with this text; `made`: the root is that of the copy."""
    path = os.path.join(root, name)
    try:
        seen = os.lstat(path)
        if made:
            return stat.S_ISLNK(seen.st_mode) and not hard  # an older state of it in a mirror
        if hard:
            return os.path.samestat(seen, os.lstat(os.path.join(root, text)))
        return os.readlink(path) == text
    except OSError:
        return made  # where the copy has no such name, it may be the refused one


def _whole_names(unsure: Mapping[_Unsure, bytes], moved: str | None) -> dict[bytes, bytes] | None:
    """Return the whole paths of files of which a message tells not all; None where one of them is not to be found."""
    found, left = dict[bytes, bytes](), set(unsure)
    if moved is not None and os.path.exists(moved):
        with open(moved, "rb") as file:
            for path, _ in parse_moved(line.rstrip(b"\n") for line in file):
                folder, _, name = path.rpartition(b"/")
                told = (name, *(name[:length] for length in range(_CUT_NAME, min(len(name), _WHOLE_NAME))))
                for key in unsure.keys() & {(where, each) for where in (folder, None) for each in told}:
                    found[path] = unsure[key]
                    left.discard(key)
    return None if left else found


def few_entries(entries: Mapping[bytes, str], most: int, folder: bytes = b"") -> dict[bytes, str]:
    """Return the entries, all below the folder; where they are more than rules may be, folders that hold many of them in their place.

    Of many in one folder, which others may use, too, what their names begin with stands in their place, see `left_out.BEGINNING`. Each
    folder has the same share of the rules, and what it leaves is for those with more: so nobody's many cost another user's folder.
    """
    if len(entries) <= most:
        return dict(entries)
    start = len(folder) + 1 if folder else 0
    groups: dict[bytes, dict[bytes, str]] = {}
    for path, why in entries.items():
        end = path.find(b"/", start)
        groups.setdefault(path if end < 0 else path[:end], {})[path] = why
    if folder and (len(groups) > most or folder.count(b"/") > _DEEPEST):
        why = min(entries.values(), key=len)
        few = _beginnings(sorted(groups), most, folder) if all(name in groups[name] for name in groups) else []
        if few and few != [folder]:
            return {name: entries.get(name, _ALIKE.format(why)) for name in few}
        return {folder: f"in it: {why}, and of many more such entries, so all of it is left out"}
    if len(groups) > most:
        return dict(entries)
    shared: dict[bytes, str] = {}
    for number, (name, below_it) in enumerate(sorted(groups.items(), key=lambda each: len(each[1]))):
        shared |= few_entries(below_it, (most - len(shared)) // (len(groups) - number), name)
    return shared


_ALIKE = "what begins so: {}, and of many more such entries, so all of these are left out"


def _beginnings(names: list[bytes], most: int, folder: bytes) -> list[bytes]:
    """Return at most so many names and beginnings of names that cover these sorted ones of a folder, and little else.

    Each beginning is as long as may be, and has a share like the folders: another user's name is left out only where it begins like many.
    """
    if len(names) <= most:
        return names
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(names[0], names[-1], strict=False)))
    groups = [list(each) for _, each in groupby(names, key=lambda name: name[: same + 1])]
    if len(groups) > most:
        return [folder] if same <= len(folder) + 1 else [names[0][:same] + BEGINNING]
    few: list[bytes] = []
    for number, group in enumerate(sorted(groups, key=len)):
        few += _beginnings(group, (most - len(few)) // (len(groups) - number), folder)
    return few

"""RECOVERY.md: how to get files back from a copy with rsync or cp alone. Its blocks are for `sh`, in this order."""

import os
import re
import shlex
from datetime import datetime

from orchestrator.domain.command_line import quoted, rsync_shell
from orchestrator.domain.job import Job
from orchestrator.domain.names import UNSAFE_WORD, show_name
from orchestrator.domain.place import Location
from orchestrator.engines.rsync.model import OURS
from orchestrator.engines.rsync.options import options_of

_POINTS = """\
`points` holds one complete tree for each restore point, named by its time in UTC; `latest` is the newest one. Unchanged files
are hard links to the point before: each tree is whole, and to read it changes nothing.

```sh
{names}
```

Which points there are; in place of `latest` below, any of them will do, as `points/2026-01-31T023000Z`:

```sh
{look}
```

## All of it

Into a folder that is empty. `-H -A -X` are hard links, access lists and extended attributes; owners come back by number;
`--modify-window=-1`: times of folders to the last digit.

```sh
{make}{rsync} "$copy/latest/" "$to/"
```

{by_cp}## What the manifest says

`zless points/NAME.manifest.gz` lists every entry with its digest, size, time, mode and owner.
"""
_SEVERAL = """\
The copy holds several folders, each below its whole path{points}.

```sh
{names}
```

{look}## Each of them

Into a folder that is empty. `-H -A -X` are hard links, access lists and extended attributes; owners come back by number;
`--modify-window=-1`: times of folders to the last digit.

```sh
{lines}
```

## What the manifest says

`zless {manifest}` lists every entry with its digest, size, time, mode and owner.
"""
_POINTS_OF_SEVERAL = """\
`points` holds one tree for each restore point, named by its time in UTC; in place of `latest`, any of them will do, as
`points/2026-01-31T023000Z`:

```sh
{look}
```

"""
_MIRROR = """\
The copy is one plain mirror of the source.

```sh
{names}
```

## All of it

Into a folder that is empty. `-H -A -X` are hard links, access lists and extended attributes; owners come back by number;
`--modify-window=-1`: times of folders to the last digit.

```sh
{make}{rsync} --exclude=/{ours} "$copy/" "$to/"
```

{by_cp}## What the manifest says

`zless {ours}/manifest.gz` lists every entry with its digest, size, time, mode and owner.
"""
_BY_CP = """\
Without rsync: `cp -a "$copy/{newest}." "$to/"`. A single file: `cp -a "$copy/{newest}folder/file" "$to/"`.

"""
_PAGE = """\
# How to bring {shown_source} back

Made by poolferry for the job `{job}`, {made}. All that follows needs only rsync or cp.
{from_command} does the same and verifies it, and needs no configuration.

Beside this page: `configuration.tar` (ours, as it was), `history.sqlite` (all runs). `sha256sum -c SHA256SUMS`, in their folder, says
whether all are as they were written. On a new machine
{bootstrap_command} takes both over. Keys, passwords and hooks are not among them. A `history-before-….sqlite` there is the history that
a host had before it lost it, with the runs of that time: no command needs it, and `rm` may take it once nobody asks for those runs.

The copy lies at {shown_place}.

{reach}{about}"""
# On a machine without poolferry the disk has to be brought to its place first.
_REACH = """\
It is on the removable disk {disk}. This brings the disk to its place, to be read; plug it in first:

```sh
{reach}
```

"""


def recovery_page(job: Job, made: datetime) -> str:
    """Render the page for a job's copy."""
    source, place, points = job.source, job.target.location, options_of(job).points
    if job.parts:
        return _page(job, made, _of_several(job))
    by_cp = _BY_CP.format(newest="latest/" if points else "") if not (source.host or place.host) else ""
    about = (_POINTS if points else _MIRROR).format(
        names="\n".join((*_port(job), *_set("copy", _for_rsync(place)), *_set("to", _for_rsync(source)))), ours=OURS, look=_look(place),
        make="" if source.host else 'mkdir -p "$to"\n', by_cp=by_cp, rsync=_rsync(job),
    )  # fmt: skip
    return _page(job, made, about)


def _of_several(job: Job) -> str:
    """Return the part of the page for a source of several folders."""
    place, points = job.target.location, options_of(job).points
    below = "$copy/latest" if points else "$copy"
    lines: list[str] = []
    for folder in job.tree.folders:
        lines += _set("part", folder.path[1:])
        lines += [] if folder.host else ['mkdir -p "$to/$part"']
        lines.append(f'{_rsync(job)} "{below}/$part/" "$to/$part/"')
    root = f"{job.source.host.login(bracket=True)}:" if job.source.host else ""
    return _SEVERAL.format(
        points=" in `points`" if points else "", names="\n".join((*_port(job), *_set("copy", _for_rsync(place)), f"to={shlex.quote(root)}")),
        look=_POINTS_OF_SEVERAL.format(look=_look(place)) if points else "", lines="\n".join(lines),
        manifest="points/NAME.manifest.gz" if points else f"{OURS}/manifest.gz",
    )  # fmt: skip


def _rsync(job: Job) -> str:
    """Return the beginning of rsync's command line. Where copies keep metadata in attributes, the far rsync reads them back from there."""
    kept = options_of(job).fake_super
    return f"rsync -aHA{'X -M--fake-super' if kept else 'XX'} --numeric-ids --modify-window=-1"


def _page(job: Job, made: datetime, about: str) -> str:
    source, place = job.tree, job.target.location
    reach = _REACH.format(disk=job.target.disk, reach="\n".join(job.target.reach)) if job.target.reach else ""
    where = quoted(str(place))
    return _PAGE.format(
        reach=reach, shown_source=_code(show_name(str(source))), job=job.name, made=f"{made:%Y-%m-%d %H:%M} UTC",
        shown_place=_code(show_name(str(place))), from_command=_code(f"poolferry restore run --from {where} --to FOLDER"),
        bootstrap_command=_code(f"poolferry restore bootstrap {where}"), about=about,
    )  # fmt: skip


def _code(text: str) -> str:
    """Return the text as code in Markdown, whatever backticks it holds."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _set(name: str, value: str) -> tuple[str, ...]:
    """Return the lines by which a shell sets a variable. What a terminal would obey comes as octal numbers, which every `sh` reads."""
    if show_name(value) == value or not re.search(UNSAFE_WORD, value):
        return (f"{name}={shlex.quote(value)}",)
    numbers = "".join(
        f"\\0{byte:03o}" if byte < 33 or byte > 126 or byte in b"\\%'`" else chr(byte) for byte in os.fsencode(value)
    )
    # The mark at the end keeps line ends, which $() would drop.
    return (f"{name}=$(printf '%b.' '{numbers}')", f"{name}=${{{name}%.}}")


def _look(place: Location) -> str:
    if place.host is None:
        return 'ls "$copy/points"'
    *first, last = _set("points", shlex.quote(f"{place.path}/points"))
    there = "" if place.host.here else f"{place.host.ssh} "
    return "\n".join((*first, last, f'{there}ls "$points"'))


def _for_rsync(place: Location) -> str:
    """Return a place in rsync's syntax; `_port` has what does not fit in there."""
    return place.path if place.host is None else f"{place.host.login(bracket=True)}:{place.path}"


def _port(job: Job) -> tuple[str, ...]:
    """Return the line by which rsync reaches a host at another port than ssh's own; one side of a job is here."""
    hosts = (job.source.host, job.target.location.host)
    here = (f"export RSYNC_RSH={shlex.quote(' '.join(rsync_shell(host)))}" for host in hosts if host and host.here)
    return (*here, *(f"export RSYNC_RSH='{host.shell}'" for host in hosts if host and host.port))

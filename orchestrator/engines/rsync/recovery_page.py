"""RECOVERY.md: how to get files back from a copy with rsync or cp alone. Its blocks are for `sh`, in this order."""

import shlex
from datetime import datetime

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.engines.rsync.model import OURS
from orchestrator.engines.rsync.options import options_of

_POINTS = """\
`points` holds one complete tree for each restore point, named by its time in UTC; `latest` is the newest one. Unchanged files
are hard links to the point before: each tree is whole, and to read it changes nothing.

```sh
copy={copy}
to={to}
```

Which points there are; in place of `latest` below, any of them will do, as `points/2026-01-31T023000Z`:

```sh
{look}
```

## All of it

Into a folder that is empty. `-H -A -X` are hard links, access lists and extended attributes; owners come back by number;
`--modify-window=-1`: times of folders to the last digit.

```sh
{make}rsync -aHAX --numeric-ids --modify-window=-1 "$copy/latest/" "$to/"
```

{by_cp}## What the manifest says

`zless points/NAME.manifest.gz` lists every entry with its digest, size, time, mode and owner.
"""
_MIRROR = """\
The copy is one plain mirror of the source.

```sh
copy={copy}
to={to}
```

## All of it

Into a folder that is empty. `-H -A -X` are hard links, access lists and extended attributes; owners come back by number;
`--modify-window=-1`: times of folders to the last digit.

```sh
{make}rsync -aHAX --numeric-ids --modify-window=-1 --exclude=/{ours} "$copy/" "$to/"
```

{by_cp}## What the manifest says

`zless {ours}/manifest.gz` lists every entry with its digest, size, time, mode and owner.
"""
_BY_CP = """\
Without rsync: `cp -a "$copy/{newest}." "$to/"`. A single file: `cp -a "$copy/{newest}folder/file" "$to/"`.

"""
_PAGE = """\
# How to bring {source} back

Made by poolferry for the job `{job}`, {made}. All that follows needs only rsync or cp. `poolferry restore run --from
{place} --to FOLDER` does the same and verifies it, and needs no configuration.

Beside this page: `configuration.tar` (ours, as it was), `history.sqlite` (all runs). On a new machine
`poolferry restore bootstrap {place}` takes both over. Keys, passwords and hooks are not among them.

The copy lies at `{place}`.

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
    by_cp = _BY_CP.format(newest="latest/" if points else "") if not (source.host or place.host) else ""
    about = (_POINTS if points else _MIRROR).format(
        copy=shlex.quote(_for_rsync(place)), to=shlex.quote(_for_rsync(source)), ours=OURS, look=_look(place),
        make="" if source.host else 'mkdir -p "$to"\n', by_cp=by_cp,
    )  # fmt: skip
    reach = _REACH.format(disk=job.target.disk, reach="\n".join(job.target.reach)) if job.target.reach else ""
    return _PAGE.format(
        reach=reach, source=source, job=job.name, made=f"{made:%Y-%m-%d %H:%M} UTC", place=place, about=about
    )


def _look(place: Location) -> str:
    if place.host is None:
        return 'ls "$copy/points"'
    port = ("-p", str(place.host.port)) if place.host.port else ()
    return shlex.join(("ssh", *port, _login(place), "ls", shlex.quote(f"{place.path}/points")))


def _for_rsync(place: Location) -> str:
    """Return a place in rsync's syntax; another port belongs in ssh's own configuration."""
    return place.path if place.host is None else f"{_login(place)}:{place.path}"


def _login(place: Location) -> str:
    host = place.host
    return "" if host is None else f"{host.user}@{host.name}" if host.user else host.name

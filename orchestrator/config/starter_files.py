"""The files that `poolferry init` writes: a commented configuration that loads without changes."""

from collections.abc import Mapping
from urllib.parse import quote_from_bytes

_TARGETS = """\
# The places that copies go to. A job names one of them as its target; each place belongs to one job.
# "poolferry check" lists every mistake in these files, with file and line.

[place.home-copies]
# A directory that holds the copies and nothing else, best on another disk. On another machine:
# path = "ssh://backup@nas.lan/srv/copies/home"
path = {target}
"""
_JOB = """\
# One job: what is copied, how, and where to. The name of this file is the name of the job: "poolferry run home".
# Every key that is not a remark is in force; a remark that begins with "# name =" is a choice, mostly the default.

engine = "rsync"
source = {source}             # what to copy: a directory, or "ssh://user@host/directory"
target = "home-copies"        # where to: a [place.NAME] of targets.toml

# When to run, in local time: one of these. Without any, the job runs when you call it.
schedule = "30 2 * * *"       # five fields as cron reads them: each night at 02:30
# daily = "02:30"             # the same
# every = "6h"
# on = "attach"               # when the target is plugged in

late-after = "26h"            # "poolferry status" says late when the newest verified copy is older
# after = ["another-job"]     # only when these have ended well
# stop-at = "06:30"           # stop then; the next run goes on from there

[rsync]
excludes = [                  # rsync's own patterns: a slash at the end means directories only
    ".cache/",
    ".Trash-*/",
]
# parallel = 2                # rsyncs side by side: for many small files, or a far machine

[keep]                        # restore points that stay; without any of these keys all do
daily = 14
weekly = 8
monthly = 12

[verify]                      # read copies again, and compare them with what was copied
every = "7d"

[guard]                       # refuse a run that looks like an accident, before anything is written
max-deleted = "30%"
# max-changed = "60%"

[pipe]
# rate-limit = "20M"          # bytes per second
# ssh-options = ["-i", "/root/.ssh/backup"]

[hooks]                       # executables to call; hooks/README.md tells more
# failed = ["/usr/local/bin/tell-me", "the copy of home failed"]
"""
_HOOKS = """\
# Hooks

Executables that a job's `[hooks]` section names by their whole path. This directory is a good place for your own.

    [hooks]
    before = "/etc/poolferry/hooks/quiet-hours"
    failed = ["/etc/poolferry/hooks/mail", "me@example.org"]

Each is called with `POOLFERRY_EVENT`, `POOLFERRY_JOB`, `POOLFERRY_OUTCOME`, `POOLFERRY_WHY` and more in its
environment, and with the same as one JSON object on its standard input. Exit 0 is fine; 75, in `before` only, means
"not now".
"""


def starter_files(source: str, target: str) -> Mapping[str, str]:
    """Return the text of each file by its path in the configuration's directory, for a first job."""
    return {
        "targets.toml": _TARGETS.replace("{target}", quote_location(target)),
        "jobs/home.toml": _JOB.replace("{source}", quote_location(source)),
        "hooks/README.md": _HOOKS,
    }


def quote_location(location: str) -> str:
    """Return a path or URL as a TOML text. Why a URL for some paths: TOML holds Unicode, names hold any bytes."""
    if location.startswith("/") and ("://" in location or any("\ud800" <= char <= "\udfff" for char in location)):
        location = "file://" + quote_from_bytes(location.encode("utf-8", "surrogateescape"))
    return '"' + "".join(map(_escaped, location)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return f"\\u{ord(char):04X}" if ord(char) < 0x20 or ord(char) == 0x7F else char

"""The files that `poolferry init` writes: a commented configuration that loads without changes."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote_from_bytes

from orchestrator.domain.fast_dataclass import dataclass

FOLDER, DATASET, POOL = "folder", "dataset", "pool"
HOOKS = "hooks/README.md"

_HEAD = """\
# The places that copies go to. A job names one of them as its target; each place belongs to one job.
# "poolferry check" lists every mistake in these files, with file and line.
"""
_FOLDER_PLACE = """
[place.{place}]
# A directory that holds the copies and nothing else, best on another disk. On another machine:
# path = "ssh://backup@nas.lan/srv/copies/home"
path = {at}
"""
_DATASET_PLACE = """
[place.{place}]
# A dataset of another pool: the copy of tank/photos lies below it, as …/photos. On another machine:
# dataset = "ssh://root@nas.lan/vault/replicas"
dataset = {at}
"""
_SET = """
[set.{place}]
# Removable disks, of which any one satisfies a job. A blank disk becomes a member, and its [disk.NAME] is written here, by:
# poolferry disks enroll /dev/disk/by-id/usb-… --set {place} --name red
fresh-within = "7d"           # some disk holds a copy not older than this
each-within = "30d"           # and each of them one not older than this
"""
_TIMES = """\
# When to run, in local time: one of these. Without any, the job runs when you call it.
schedule = "30 2 * * *"       # five fields as cron reads them: each night at 02:30
# daily = "02:30"             # the same
# spread = "2h"               # up to so much later, at this machine's own time: for many machines
# every = "6h"
# on = "attach"               # when the target is plugged in

late-after = "26h"            # "poolferry status" says late when the newest verified copy is older
"""
_PLUGGED_IN = """\
on = "attach"                 # run when a disk of the set is plugged in; jobs/disks.md describes such a visit
late-after = "8d"             # "poolferry status" says late when the newest verified copy is older
"""
_DATASETS = """\
# One job: what is copied, how, and where to. The name of this file is the name of the job: "poolferry run {name}".
# Every key that is not a remark is in force; a remark that begins with "# name =" is a choice, mostly the default.

engine = "zfs"
source = {source}             # the dataset, with all below it; on another machine "ssh://user@host/pool/data"
target = "{place}"        # where to: a {what} of targets.toml; the copy lies there as …/{copy}

{times}
[zfs]
{zfs_name}# exclude = ["*/cache"]       # datasets below the source, with all below them
# recursive = true

[snapshots]                   # sanoid takes and prunes them on the source; without this section only what is there is sent
hourly = 24
daily = 14
monthly = 2

[keep]                        # snapshots of the copy that stay; without any of these keys all do
daily = 30
weekly = 8
monthly = 12

[verify]                      # read both sides and compare them
every = "30d"
"""
_WATCH = """\
# Watches a pool and scrubs it each month; copies nothing. "poolferry run {name}" looks at once.

engine = "pool"
source = {source}
every = "15m"
late-after = "2h"

[pool]
scrub-every = "30d"           # without it, only watch
# capacity-warn = "80%"
"""
_ONE_FOLDER = 'source = {source}             # what to copy: a directory, or "ssh://user@host/directory"'
_JOB = """\
# One job: what is copied, how, and where to. The name of this file is the name of the job: "poolferry run {name}".
# Every key that is not a remark is in force; a remark that begins with "# name =" is a choice, mostly the default.

engine = "rsync"
source = {source}             # what to copy: a directory, or "ssh://user@host/directory"
target = "{place}"        # where to: a {what} of targets.toml

{times}# after = ["another-job"]     # only when these have ended well
# stop-at = "06:30"           # stop then; the next run goes on from there

[rsync]
excludes = [                  # rsync's own patterns: a slash at the end means directories only
    ".cache/",
    ".Trash-*/",
]
# parallel = 2                # rsyncs side by side; without it `plan` tells what the two places bear

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
# failed = ["/usr/local/bin/tell-me", "the copy of {name} failed"]
"""
_ABOUT_HOOKS = """\
# Hooks

Executables that a job's `[hooks]` section names by their whole path. This directory is a good place for your own.

    [hooks]
    before = "/etc/poolferry/hooks/quiet-hours"
    failed = ["/etc/poolferry/hooks/mail", "me@example.org"]

Each is called with `POOLFERRY_EVENT`, `POOLFERRY_JOB`, `POOLFERRY_OUTCOME`, `POOLFERRY_WHY` and more in its
environment, and with the same as one JSON object on its standard input. Exit 0 is fine; 75, in `before` only, means
"not now".
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterJob:
    """One job to be. `kind`: a folder, a dataset, or a pool to watch; `place`: its target's name; `at`: where that lies; with `disks`
    it is a rotation set, which lies nowhere. `sources`: several folders in place of the one.
    """

    name: str
    kind: str
    source: str
    place: str = ""
    at: str = ""
    disks: bool = False
    sources: tuple[str, ...] = ()


def starter_files(source: str, target: str) -> Mapping[str, str]:
    """Return the text of each file by its path in the configuration's directory, for a first job of a folder."""
    return starter_job_files([StarterJob(name="home", kind=FOLDER, source=source, place="home-copies", at=target)])


def starter_job_files(jobs: Sequence[StarterJob]) -> Mapping[str, str]:
    """Return the text of each file by its path in the configuration's directory."""
    places = {job.place: starter_section(job) for job in jobs if job.place}
    files = {"targets.toml": _HEAD + "".join(places.values())} if places else {}
    files |= {f"jobs/{job.name}.toml": _job(job) for job in jobs}
    return files | {HOOKS: _ABOUT_HOOKS}


def starter_section(job: StarterJob) -> str:
    """Return the section of targets.toml for a job's place, with an empty line before it."""
    form = _SET if job.disks else _DATASET_PLACE if job.kind == DATASET else _FOLDER_PLACE
    return form.replace("{place}", job.place).replace("{at}", quote_location(job.at))


def _job(job: StarterJob) -> str:
    form = {FOLDER: _JOB, DATASET: _DATASETS, POOL: _WATCH}[job.kind]
    last = job.source.rstrip("/").rpartition("/")[2]
    own = "" if last == job.name or job.kind != DATASET else f'name = "{job.name}"\n'
    values = {
        "{name}": job.name, "{place}": job.place, "{what}": "[set.NAME]" if job.disks else "[place.NAME]", "{zfs_name}": own,
        "{copy}": job.name if own else last, "{times}": _PLUGGED_IN if job.disks else _TIMES,
        "{source}": quote_location(job.source),
    }  # fmt: skip
    if job.sources:
        folders = ", ".join(map(quote_location, job.sources))
        form = form.replace(
            _ONE_FOLDER, f"sources = [{folders}]     # each by its whole path; a slash in excludes begins at the top"
        )
    for sign, value in values.items():
        form = form.replace(sign, value)
    return form


def quote_location(location: str) -> str:
    """Return a path or URL as a TOML text. Why a URL for some paths: TOML holds Unicode, names hold any bytes."""
    if location.startswith("/") and ("://" in location or any("\ud800" <= char <= "\udfff" for char in location)):
        location = "file://" + quote_from_bytes(location.encode("utf-8", "surrogateescape"))
    return '"' + "".join(map(_escaped, location)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return f"\\u{ord(char):04X}" if ord(char) < 0x20 or ord(char) == 0x7F else char

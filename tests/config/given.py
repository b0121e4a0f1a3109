"""Configurations for tests: a directory from texts, engines to read it with, and what a refusal says."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from orchestrator.config.load import load_configuration
from orchestrator.config.models import Configuration, EngineSection
from orchestrator.domain.errors import ConfigMistake, DeclarationError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import VerifyRules, config_key
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Bytes, parse_size


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeOptions:
    """Options of copies of trees: a key of each kind."""

    excludes: tuple[str, ...] = config_key("what is left out", default=(), example='["*.tmp"]')
    kinds: tuple[str, ...] = config_key(
        "which kinds go along", default=("file", "link"), choices=("file", "link", "pipe")
    )
    delete: bool = config_key("consent to remove", default=False)
    in_place: bool = config_key("write into the file itself", default=False)
    compress: str = config_key("how to compress", default="auto", choices=("auto", "none", "zstd"))
    label: str | None = config_key("a name for it", default=None)
    parallel: int = config_key("copies side by side", default=1, least=1)
    share: float = config_key("share of the line", default=1.0)
    block: Bytes = config_key("bytes at once", default=Bytes(65536), parse=parse_size, example="64K")
    least_free: Bytes | None = config_key(
        "bytes that stay free", default=None, parse=parse_size, least=1024, example="1G"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetOptions:
    """Options of copies of datasets."""

    label: str = config_key("a name for it", example="nightly")
    recursive: bool = config_key("children too", default=True)


def check(
    options: TreeOptions, source: SourceTree, target: Location, verify: VerifyRules
) -> Iterator[tuple[str, str, str]]:
    """Two mistakes across keys: one in the section, one at a key before it."""
    if options.in_place and options.delete:
        yield "tree.in-place", "does not go with delete", "one of them"
    if source.root.host and target.host:
        yield "source", "is on another machine, as the target is", "one of them here"


ENGINES = {
    "tree": EngineSection(name="tree", options=TreeOptions, check=check),
    "sets": EngineSection(name="sets", options=DatasetOptions, datasets=True),
}
TARGETS = '[place.backup]\npath = "/backup/photos"\n'
JOB = 'engine = "tree"\nsource = "/srv/photos"\ntarget = "backup"\n'

FILES = {
    "targets.toml": """\
# places
[place.backup]
path = "/backup/photos"

[place.vault]
dataset = "vault/replicas"

[place.mail]
path = "ssh://root@nas:2222/copies/mail"

[place.disk]
path = "/media/disk/copies"
""",
    "jobs/mail.toml": """\
engine = "tree"
source = "/srv/mail"
target = "mail"
every = "15m"
window = "22:00-06:00"
priority = 5
known-as = "letters"
permits = ["link-nas", "lab", "lab"]
permit-weight = 2
permit-away = "wait 30m"
""",
    "jobs/disk.toml": """\
engine = "tree"
source = "/srv/disk"
target = "disk"
on = "attach"
min-interval = "20h"
""",
    "jobs/tank.toml": """\
daily = "02:30"
spread = "20m"
source = "ssh://root@old/tank/photos"
engine = "sets"
target = "vault"

[sets]
label = "nightly"
recursive = false

[snapshots]
frequently = 4
hourly = 36
daily = 30
weekly = 8
monthly = 6
yearly = 2
recursive = false
autosnap = true
autoprune = true
needs-hook = true
use = "/etc/sanoid"

[hooks]
snapshot-before = "/bin/still"
snapshot-after = "/bin/still"
""",
    "jobs/photos.toml": """\
# each key once
engine = "tree"
source = "/srv/photos"
target = "backup"
schedule = "30 2 * * *"
late-after = "26h"
after = [
    "mail",
]
stop-at = "06:30"

[tree]
excludes = ["*.tmp"]
kinds = ["file"]
delete = true
in-place = false
compress = "zstd"
label = "first"
parallel = 3
share = 0.5
block = "64K"
least-free = "1G"

[keep]
hourly = 24
daily = 14
weekly = 8
monthly = 12
yearly = 5

[verify]
digest = "blake3"
every = "7d"
workers = 1
read-all-within = "90d"
per-day = "200G"
window = "22:00-06:00"

[drill]
every = "7d"
files = 20
size = "5G"
whole-every = "90d"
scratch = "/srv/scratch"
check-command = ["/usr/local/bin/open-albums"]
check-within = "30m"

[guard]
max-deleted = "30%"
max-changed = 200
max-deleted-per-folder = "90%"
max-changed-per-folder = "90%"

[pipe]
stall-after = "5m"
buffer = "256M"
transport = "mbuffer"
public-transport = false
rate-limit = "20M"
ssh-options = ["-i", "/root/.ssh/backup"]

[retry]
attempts = 6
wait = "1m"
wait-at-most = "30m"

[hooks]
before = "/bin/quiet"
done = ["/bin/tell", "done"]
nothing-to-do = "/bin/tell"
incomplete = "/bin/tell"
waiting = "/bin/tell"
refused = "/bin/tell"
failed = [["/bin/tell"], ["/bin/mail", "me@example.org"]]
interrupted = "/bin/tell"
late = "/bin/tell"
disk-arrived = "/bin/tell"
disk-safe = "/bin/tell"
disk-overdue = "/bin/tell"
timeout = "2m"
""",
}


def written(folder: Path, files: Mapping[str, str | bytes]) -> str:
    """A directory with these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(folder)


def loaded(folder: Path, job: str = JOB, targets: str = TARGETS, **more: str) -> Configuration:
    """The configuration of one job, photos, and more jobs by name."""
    others = {f"jobs/{name}.toml": text for name, text in more.items()}
    return load_configuration(written(folder, {"targets.toml": targets, "jobs/photos.toml": job, **others}), ENGINES)


def refused(
    folder: Path, job: str | bytes = JOB, targets: str | bytes = TARGETS, **more: str
) -> tuple[ConfigMistake, ...]:
    """The mistakes of a configuration that has some."""
    others = {f"jobs/{name}.toml": text for name, text in more.items()}
    return refusal(written(folder, {"targets.toml": targets, "jobs/photos.toml": job, **others}))


def refusal(directory: str) -> tuple[ConfigMistake, ...]:
    """The mistakes of a directory that has some."""
    with pytest.raises(DeclarationError) as caught:
        load_configuration(directory, ENGINES)
    return caught.value.mistakes


def told(mistakes: tuple[ConfigMistake, ...]) -> list[str]:
    """Each mistake as its file's name, line and key."""
    return [f"{Path(mistake.file).name}:{mistake.line}:{mistake.key}" for mistake in mistakes]

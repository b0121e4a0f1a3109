"""Doors through which answers and files of others come in, each as the program uses it, and real answers that it understands."""

import argparse
import contextlib
import gzip
import io
import json
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from importlib.machinery import SourceFileLoader
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from orchestrator import compose
from orchestrator.app.bootstrap import unpack_files
from orchestrator.app.systemd_state import parse_units
from orchestrator.cli import main
from orchestrator.config.decode import parse_toml_file
from orchestrator.config.kit_review import review_kit
from orchestrator.config.machine import parse_machine_config
from orchestrator.config.migrate.borgmatic import import_borgmatic
from orchestrator.config.migrate.btrbk import import_btrbk
from orchestrator.config.migrate.calls import CalledScripts, script_schedule, scripts_called
from orchestrator.config.migrate.program_calls import ImportedSettings
from orchestrator.config.migrate.rsnapshot import import_rsnapshot
from orchestrator.config.migrate.syncoid_jobs import SyncoidSettings, import_syncoid
from orchestrator.config.migrate.zrepl import import_zrepl
from orchestrator.config.parse_job import parse_job, parse_places
from orchestrator.config.sets import parse_sets
from orchestrator.disks import detect, filesystem, marker, smart
from orchestrator.disks import pool as disk_pool
from orchestrator.domain.answers import understand
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.errors import ConfigMistake
from orchestrator.domain.gate import Gate
from orchestrator.domain.job import SnapshotRules
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.rotation import Disk
from orchestrator.domain.source_identity import parse_identity
from orchestrator.domain.source_state import parse_source_state
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.restore import RestoreRequest
from orchestrator.engines.pool import ENGINE as POOL
from orchestrator.engines.rsync import ENGINE as RSYNC
from orchestrator.engines.rsync import parse as rsync_parse
from orchestrator.engines.sanoid import ENGINE as SANOID
from orchestrator.engines.zfs import ENGINE as ZFS
from orchestrator.engines.zfs.model import SnapshotPresent
from orchestrator.engines.zfs.plan.resume import parse_attempts
from orchestrator.engines.zfs.recovery.delegations import parse_delegations
from orchestrator.engines.zfs.recovery.kit_diff import parse_kit_content
from orchestrator.engines.zfs.recovery.pool_consumers import parse_storage_layers
from orchestrator.engines.zfs.restore import survey as restore_survey
from orchestrator.engines.zfs.restore.pool_root import parse_inside
from orchestrator.engines.zfs.restore.uid_map import parse_accounts
from orchestrator.engines.zfs.space import check as zfs_space
from orchestrator.engines.zfs.space.check import parse_space
from orchestrator.engines.zfs.survey import parse as zfs_parse
from orchestrator.engines.zfs.survey.confirm import confirm_snapshots
from orchestrator.engines.zfs.survey.resume_token import parse_token
from orchestrator.engines.zfs.verify.checksum import parse_checksum_support
from orchestrator.engines.zfs.verify.read_copy import parse_readable_datasets
from orchestrator.gate.login_variables import parse_accepted_variables
from orchestrator.gate.read_only import admit_reading
from orchestrator.gate.request import parse_request
from orchestrator.history import authentication_key
from orchestrator.planners.guard import parse_guard_memory
from orchestrator.process.pipeline import printable_text
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from orchestrator.runner.disk import lease
from orchestrator.verify.attributes import parse_attributes
from orchestrator.verify.entry import format_plain_line, parse_line, parse_listing, split_records
from orchestrator.verify.fake_super import stored_entries
from orchestrator.verify.manifest_lookup import parse_lookup, parse_sizes
from orchestrator.verify.results import ResultCollector
from orchestrator.verify.source import parse_copy_attributes
from tests.engines.pool import builders as pools
from tests.engines.rsync import builders as trees
from tests.engines.sanoid import builders as sanoids
from tests.engines.zfs import sides
from tests.engines.zfs.survey_text import HEAD, rows

COMMAND = Command(argv=("look",), effect=Effect.READS, host=Host(name="far"))
SOURCES = SourceTree(root=Location(path="/"), parts=("home", "etc"))
DISK = Disk(name="red", set="offsite", identity="u-1", content="ext4", inside=None, key_file=None, note="")
DEVICE = BlockDevice(
    name="sdb1", path="/dev/sdb1", disk="sdb", size=1 << 20, kind="ext4", uuid="u-1", sub="", label="", read_only=False,
    external=True, serial="", model="", wwn="", case="", parts=(), table="", at=(),
)  # fmt: skip
HERE = Path(__file__).parent.parent
STORED = (
    b"a//f\t5\t1.0000000000\t644\t7\t7\t1\t9\t\0\0# file: ./a\0user.rsync.%stat=0x31323037373720302c3020303a30\0"
    b"user.rsync.%aacl=0x800000000400000007000000800000003700000007000080\0\0//\0./a\0there\0"
)
WORDS = (
    b"[", b"{", b"{}", b"[]", b"null", b"\n", b"\r", b"\t", b"\0", b" ", b"=", b"=end\n", b"|", b"-", b"-1", b"1e999", b"nan", b"inf",
    b"9" * 10,
    b"9" * 17,
    b"9" * 30, b"9" * 5000, b"1_0", b"\xc2\xb2", b"\xff", b"\xe2\x80\xae", b"\\", b"\\#999", b"../", b"//", b"/", b"a@b#c", b"%",
    b'"job"', b"true", b"pf:", b"pf:>f|", b"=snapshots\n", b"=datasets\n", b"Number of files: ", b"size\t", b"d ", b"p d ",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A door, and real answers that it understands."""

    name: str
    read: Callable[[bytes], object]
    samples: tuple[bytes, ...]

    def __str__(self) -> str:
        return self.name


def reader(said: bytes) -> ScriptedExecutor:
    return ScriptedExecutor([(lambda _: True, scripted_result(said))])


def told(parse: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """A parser behind the door that all looks go through."""
    return lambda said: understand("program", COMMAND, said, parse)


def recorded(folder: str, key: str = "") -> tuple[bytes, ...]:
    files = sorted((HERE / folder).iterdir())
    if not key:
        return tuple(file.read_bytes() for file in files)
    return tuple(json.dumps(json.loads(file.read_text())[key]).encode() for file in files if key in file.read_text())


def manifest(lines: bytes) -> bytes:
    head = b"# poolferry manifest 1\n# job: a\n# source: /s\n# point: p\n# digest: xxh128\n# created: 2026-03-04T05:06:07+00:00\n"
    return head + lines + b"# end entries=%d files=1 bytes=3\n" % lines.count(b"\n")


LINE = b"xxh128:00ff\tf\t3\t1700000000000000000\t644\t0\t0\t1\t7\ta/b c.txt\n"
LINK = b"-\tl\t0\t1700000000000000000\t777\t0\t0\t1\t8\tz\t../to\n"
LISTING = (
    b"a/b//f\t3\t1700000000.0000000000\t644\t0\t0\t1\t7\t\0" + b"//d\t0\t1700000000.5000000000\t755\t0\t0\t2\t2\t\0"
)
LOOK = (
    HEAD + "=above\nvault\t99\toff\n=datasets\n" + rows("tank/photos") + rows("tank/photos/in", receive_resume_token=sides.FIRST)
    + "=snapshots\ntank/photos@a\t1\t1\t1700000000\ntank/photos#kept\t1\t1\n=end\n"
).encode()  # fmt: skip
DRY_RUN = (
    b"pf:>f+++++++++|3|a\npf:*deleting|0|b/c\npf:.d..t......|0|./\npf:>f.st......|3|b/d\n\nNumber of files: 3 (reg: 2, dir: 1)\n"
    b"Total transferred file size: 6 bytes\nLiteral data: 0 bytes\n"
)
VERSION = (
    b'{"version": "3.2.7", "protocol": "31.0", "checksum_list": ["xxh128", "md5"], "compress_list": ["zstd"]}',
    b"rsync  version 3.1.3  protocol version 31\nChecksum list:\n    xxh128 md5\nCompress list:\n    zstd\n",
)
TARGET = (
    b'd\x001024 4096 500 400\n\0{"format": 1, "job": "photos", "coarse": false}\0u d 3\0h d 8\0l l points/2026-03-04T050607Z\0'
    b"p d 2026-03-04T050607Z\0p f 2026-03-03T050607Z.manifest.gz\0o d work\0m f 1772600767.5\0"
)
DESTINATION = (
    b'folder\0{"job": "photos", "point": "p", "path": "", "filling": ["a"]}\x003\0/to\0/to/in\n/to/on\n\0one\0two\0'
)
KIT = b"=status\n\tNAME  STATE\n\ttank  ONLINE\n\t  /dev/sda1  ONLINE\n=marks\ntank@a\t1\t1\n=users\nann:x:1:1::/:/bin/sh\n=end\n"
HELD = (
    b"=user 0\n=pools\ntank\t7\n=bookmarks\ntank/photos#poolferry-x\t1700000000\n=snapshots\n1\t9\t1\ttank/photos@a\n=holds\n"
    b"tank/photos@a\tpoolferry\tTue Mar  3 05:06 2026\n=end\n"
)
POOL_SEEN = b"=datasets\nt\tfilesystem\t1\t0\ton\tno\n=owned\nt\tmountpoint\t/t\n=snapshots\nt@a\t1\t1700000000\n=mounts\nt /t\n=pools\nt\t1\n\t/dev/md\n=end\n"
FINDMNT = b'{"filesystems": [{"source": "/dev/sdb1", "fstype": "ext4", "options": "rw,noatime", "maj:min": "8:17"}]}'
FAILURE = b'rsync: [sender] send_files failed to open "/a\\#012": Permission denied (13)'
BASES = b"tank/photos\t99\ntank/photos#x\t-\n"
SENDABLE = b"vault/copies/photos\t9\t9\nvault/copies/photos@a\t-\t-\n"
SCRATCH = b"vault/copies/poolferry-try/x\t9\t/m\tphotos@a\t2026-03-04T05:06:07+00:00\tvault/copies/poolferry-try/x\n"
PROPERTIES = (
    b"=properties\nvault/copies/photos\tmountpoint\t/a\t-\tlocal\n=altroot\n/alt\n=mounts\ntank /\\040a\n=end\n"
)
TAKEN = b"1795187460\ntank/photos\t41\t-\ttank/photos\n\n1795187458\ttank/photos@autosnap_2026-11-20_15:10:58_monthly\n"
DAILY, OUTLIVED = SnapshotRules(daily=1), sanoids.world(*(sanoids.taken("daily", 2026, 10, day) for day in (1, 2)))
SAID = b"taking snapshot tank@autosnap_x_hourly\nINFO: pruning tank@a ... \ncould not remove tank@a : 1\ncannot destroy 'tank@a': busy. Run x\n"
MOVED = b"pf:>f|1|2|00ff|a\\#012b\n"
SUMS = b"\\00ff  ./a\\nb\n00aa  ./c\n"
MARKER = b'{"format": 1, "disk": "u", "name": "red", "set": "s", "owner": "o", "host": "h", "generation": 3}'
MARKED_POOL = b"org.poolferry:disk\tu\norg.poolferry:name\tred\norg.poolferry:generation\t3\n"
FAR_TREES = trees.job(target=trees.THERE)


COPIES = Location(path="vault/copies")


def survey_trees(said: bytes, **options: Any) -> object:
    return RSYNC.survey(trees.job(target=trees.THERE, **options), trees.ASKED, reader(said))


def survey_restore(said: bytes) -> object:
    point = RestorePoint(name="p", taken=trees.NOW, tree=trees.ROOT, manifest=None)
    return RSYNC.survey_restore(FAR_TREES, RestoreRequest(point=point, path=b"", to=Location(path="/to")), reader(said))


def survey_datasets(said: bytes, **requested: Any) -> object:
    return ZFS.survey(sides.job(), replace(sides.ASKED, **requested), reader(said))


def confirm(said: bytes) -> object:
    confirmation = SnapshotPresent(dataset=sides.COPY, snapshot="a", guid=1)
    confirm_snapshots((confirmation,), reader(said))
    return confirmation


def pins(said: bytes) -> object:
    return ZFS.survey_pins((sides.job(),), lambda _: reader(said))


def look(said: bytes) -> object:
    """A dry run's lines, as rsync's look reads them."""
    lines = rsync_parse.DryRunReader()
    for line in said.split(b"\n"):
        lines.feed(line)
    return lines.changes()


def every(parse: Callable[[bytes], object], mark: bytes) -> Callable[[bytes], object]:
    return told(lambda said: [parse(part) for part in said.split(mark)])


def use_pool(said: bytes) -> object:
    return disk_pool.use(DISK, DEVICE, reader(said)), disk_pool._works(DISK, reader(said))


def labels(said: bytes) -> object:
    return disk_pool.parse_label(said), disk_pool.parse_vdev(said)


def archive() -> bytes:
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("a/history.sqlite", "a/configuration/x.toml", "a/kit.json"):
            entry = tarfile.TarInfo(name)
            entry.size = 3
            tar.addfile(entry, BytesIO(b"abc"))
        link = tarfile.TarInfo("a/link")
        link.type, link.linkname = tarfile.LNKTYPE, "a/link"
        tar.addfile(link)
    return packed.getvalue()


TARGETS: tuple[Target, ...] = (
    Target("rsync survey", survey_trees, (TARGET, b"d 7 3 \0x\0", DRY_RUN, *VERSION, b"12 a/.~poolferry-partial~/b\0")),
    Target("rsync survey in lanes", partial(survey_trees, parallel=3), (TARGET, b"a//f\t3\t1\t7\t8\0in//d\t0\t2\t9\t0\0")),
    Target("rsync look", told(look), (DRY_RUN,)),
    Target("rsync source", told(partial(rsync_parse.parse_sources, tree=SOURCES)), (b"d 7 0 755\n3 0 755\0x\0l /srv/etc\0", b"a\0f\0")),
    Target("rsync both", told(rsync_parse.split_surveys), (b"d 7 3 \0x\0" + TARGET,)),
    Target("rsync target", told(lambda said: rsync_parse.parse_target(said, trees.ROOT, mirror=False)), (TARGET,)),
    Target("rsync mirror", told(lambda said: rsync_parse.parse_target(said, trees.ROOT, mirror=True)), (TARGET,)),
    Target("rsync half-copied", told(rsync_parse.parse_partial_files), (b"12 a/b\0003 c\0",)),
    Target("rsync sizes", told(lambda said: rsync_parse.parse_sizes(said, 2)), (b"12\n-\n",)),
    Target("rsync version", told(rsync_parse.parse_program), VERSION),
    Target("rsync points", lambda said: RSYNC.points(FAR_TREES, reader(said)), (TARGET,)),
    Target("rsync restore", survey_restore, (DESTINATION, b"folder\n", b"file\n")),
    Target("rsync check", lambda said: RSYNC.advise(FAR_TREES, reader(said)), (TARGET, *VERSION)),
    Target("rsync moved", told(lambda said: list(rsync_parse.parse_moved(said.split(b"\n")))), (MOVED,)),
    Target("rsync sums", told(lambda said: list(rsync_parse.parse_sums(said.split(b"\n")))), (SUMS,)),
    Target("rsync meter", lambda said: (meter := rsync_parse.RsyncMeter(), meter.feed(said), meter.moved()), (DRY_RUN, b"\r 99 12% 1MB/s ")),
    Target("rsync failure", lambda said: RSYNC.explain(trees.failed(printable_text(said))), (FAILURE,)),
    Target("target.json", lambda said: compose._owner(said, trees.THERE), (b'{"format": 1, "job": "photos", "coarse": false}',)),
    Target("zfs survey", survey_datasets, (LOOK,)),
    Target("zfs whole survey", partial(survey_datasets, allowed=frozenset({"aside"})), (LOOK,)),
    Target("zfs points", lambda said: ZFS.points(sides.job(), reader(said)), (b"tank/photos@a\t1700000000\n",)),
    Target("zfs confirm", confirm, (b"vault/copies/photos@a\tguid\t1\nvault/copies/photos\tprevsnap\tvault/copies/photos@a\n",)),
    Target("zfs check", lambda said: ZFS.advise(sides.job(), reader(said)), (LOOK,)),
    Target("zfs kit", lambda said: ZFS.survey_kit(sides.job(), sides.NOW, reader(said)), (KIT,)),
    Target("zfs pool", lambda said: ZFS.survey_pool("tank", reader(said)), (POOL_SEEN,)),
    Target("zfs holds", pins, (HELD,)),
    Target("zfs bases", lambda said: ZFS.bases(sides.job(), 7, reader(said)), (BASES,)),
    Target("zfs sendable", lambda said: ZFS.sendable(sides.job(), reader(said)), (SENDABLE,)),
    Target("zfs scratch", lambda said: ZFS.survey_scratch(sides.job(), reader(said)), (SCRATCH,)),
    Target("zfs properties", lambda said: restore_survey._properties(sides.COPY, reader(said)), (PROPERTIES,)),
    Target("zfs accounts", told(parse_accounts), (b"=users\nann:x:1:1::/:/bin/sh\n=groups\nann:x:1:\n",)),
    Target("zfs token", lambda said: parse_token(said.decode("utf-8", "surrogateescape")), (sides.FIRST.encode(), sides.LATER.encode())),
    Target("pool survey", lambda said: POOL.survey(pools.job(), pools.ASKED, reader(said)), recorded("engines/pool/recorded")),
    Target("sanoid survey", lambda said: SANOID.survey(sanoids.job(), sanoids.ASKED, reader(said)), (TAKEN,)),
    Target("sanoid space", lambda said: SANOID.unpruned(sanoids.job(DAILY), OUTLIVED, reader(said)), (b"300\t100\n5\t-\n",)),
    Target("sanoid words", lambda said: SANOID.told(said.decode("utf-8", "surrogateescape")), (SAID,)),
    Target("sanoid check", lambda said: SANOID.advise(sanoids.job(), reader(said)), (b"sanoid version 2.2.0\n",)),
    Target("disks here", lambda said: detect.survey_devices(reader(said)), recorded("disks/recorded", "output")),
    Target("disk signatures", lambda said: detect.signatures("/dev/sdb", 1 << 21, reader(said)), (b'{"signatures": [{"type": "ext4"}]}',)),
    Target("disk probe", told(detect.parse_probe), (b"DEVNAME=/dev/sdb1\nUUID=u\\ 1\nTYPE=ext4\n",)),
    Target("disk in use", lambda said: filesystem.use(DISK, DEVICE, reader(said)), (FINDMNT,)),
    Target("disk's pool", use_pool, (b"7 ONLINE\n", b"0 2097152 linear 8:16 0\n")),
    Target("disk's labels", told(labels), (b"    pool_guid: 7\n    guid: 8\n    state: 0\n", b"\t  99 ONLINE\n")),
    Target("disk's marker", marker.parse_marker, (MARKER,)), Target("pool's marker", marker.parse_properties, (MARKED_POOL,)),
    Target("pool's guid", lambda said: disk_pool.read_guid("tank", reader(said)), (b"7\n",)),
    Target("disk's health", lambda said: smart.ask_health(DEVICE, reader(said)), recorded("disks/recorded")),
    Target("manifest lines", every(parse_line, b"\n"), (LINE + LINK,)),
    Target("listing", told(lambda said: [(format_plain_line(r, r[: r.find(b"//") + 2], "x"), parse_listing(r)) for r in split_records((said,))]), (LISTING,)),
    Target("looked up", told(lambda said: parse_lookup(said, ["/m"], [b"a/b c.txt"])), (b"=0\n" + LINE + b"=end\n",)),
    Target("sizes there", told(parse_sizes), (b"3\t1700000000.0000000000\t./a\0",)),
    Target("kit's archive", unpack_files, (archive(), gzip.compress(archive()))),
)  # fmt: skip


def lines_of(parse: Callable[[list[bytes]], object]) -> Callable[[bytes], object]:
    """A parser of lines behind the door that all looks go through."""
    return told(lambda said: [*found] if isinstance(found := parse(said.split(b"\n")), Iterator) else found)


def texts_of(parse: Callable[[list[str]], object]) -> Callable[[bytes], object]:
    return lines_of(lambda lines: parse([line.decode("utf-8", "surrogateescape") for line in lines]))


def text_of(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    """A parser that knows itself what is none of its text."""
    return lambda said: parse(said.decode("utf-8", "surrogateescape"))


ENGINES = compose.EngineSections()


def migrated(said: bytes) -> object:
    """The files that `import syncoid` is given: a person may name any."""
    text = said.decode("utf-8", "surrogateescape")
    given = SyncoidSettings(
        crontabs=[("crontab", text)], units=[("a.service", text), ("a.timer", text)], scripts=[("a.sh", text)],
        called=CalledScripts(texts={"/a.sh": text}),
    )  # fmt: skip
    scripts_called(script_schedule("a.sh", text)[:1])
    with contextlib.suppress(ValueError):  # which the command tells as wrong usage
        import_syncoid(replace(given, conf=("sanoid.conf", text)), ENGINES)
    return import_syncoid(given, ENGINES)


def migrated_from(program: str) -> Callable[[bytes], object]:
    """Return the reader of another program's file, which stands for its crontab and unit too."""

    def read(said: bytes) -> object:
        text = said.decode("utf-8", "surrogateescape")
        given = ImportedSettings(
            files=[("a", text)], crontabs=[("cron", text)], units=[("a.service", text)], scripts=[("a.sh", text)],
            called=CalledScripts(texts={"/a.sh": text}),
        )  # fmt: skip
        with contextlib.suppress(ValueError):  # which the command tells as wrong usage
            match program:
                case "rsnapshot":
                    return import_rsnapshot(given, ENGINES)
                case "btrbk":
                    return import_btrbk(given, ENGINES, live=True)
                case "zrepl":
                    return import_zrepl(given, ENGINES)
                case _:
                    return import_borgmatic(given, ENGINES, "/backup")
        return None

    return read


def configured(said: bytes) -> object:
    """A job file and a machine's file as somebody writes them."""
    found = parse_toml_file("job.toml", said, least="engine")
    if not isinstance(found, ConfigMistake):
        parse_job(found, "job", compose.EngineSections())
        parse_places(found)
        parse_sets(found, ())
        parse_machine_config(found)
        str(found.mistakes)
    return found


def reviewed(said: bytes) -> object:
    return review_kit(
        {"jobs/a.toml": said, "targets.toml": said, "poolferry.toml": said, said.decode("latin-1"): said}, frozenset()
    )


def collected(said: bytes) -> object:
    collector = ResultCollector(1)
    collector.feed(said)
    return collector.reading(took_s=0)


def hook(name: str) -> ModuleType:
    """A hook in Python, as a module; `notice` lies beside it."""
    made = ModuleType(Path(name).stem)
    SourceFileLoader(made.__name__, str(HERE.parent / "hooks" / name)).exec_module(made)
    return made


with patch.object(sys, "dont_write_bytecode", True):
    sys.modules["notice"] = NOTICE = hook("notice.py")
    MAIL, NTFY, PING, WAKE = hook("mail"), hook("ntfy"), hook("healthchecks"), hook("wake-on-lan")
    del sys.modules["notice"]  # that alone: what the hooks import must not be loaded twice


def notified(said: bytes) -> object:
    """Return the notices of an environment (facts that end in NUL) and of the stdin after it; no header is forged."""
    *facts, report = said.split(b"\0")
    told = dict(fact.decode("utf-8", "surrogateescape").partition("=")[::2] for fact in facts if fact[:1].isalpha())
    stdin = io.TextIOWrapper(BytesIO(report), encoding="utf-8")
    with patch.dict("os.environ", told), patch("sys.stdin", stdin):
        letter = MAIL.compose(["root@localhost"], "poolferry@localhost")
        sent = bytes(letter)
        texts = NTFY.message(), NTFY.header(NOTICE.headline()), PING.ping_address("https://hc.example.org/ping/1")
    assert [
        line.split(b":")[0] for line in sent.partition(b"\n\n")[0].splitlines() if not line.startswith(b" ")
    ] == HEADERS
    assert all(sign.isprintable() or sign == "\n" for text in texts for sign in text)
    assert "\n" not in texts[1] + texts[2]
    return texts


def remembered(said: bytes) -> object:
    """Return the memory that wake-on-lan writes where this one lies, after a crash or a fault of the disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.json"
        path.write_bytes(said)
        given = argparse.Namespace(state=path, host="127.0.0.1", port=1, within=0, mac=b"", broadcast=("127.0.0.1", 9))
        with patch.object(WAKE, "answers", lambda *_: True):
            assert WAKE.wake(given, "7") == 0
        with patch.object(WAKE, "shut_down", lambda _: ""), patch.object(WAKE, "wait_for", lambda *_, **__: True):
            assert WAKE.let_sleep(given, "7") == 0
        return path.read_bytes()


def plugged_in(said: bytes) -> object:
    """The command of udev's unit, with the identity that udev read from a stranger's disk."""
    identity = said.replace(b"\0", b"").decode("utf-8", "surrogateescape")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "jobs").mkdir()
        (Path(folder) / "jobs/photos.toml").write_text(OUR_JOB)
        (Path(folder) / "targets.toml").write_text(OUR_DISK)
        told = io.TextIOWrapper(BytesIO(), errors="surrogateescape")
        with (
            patch.dict("os.environ", {"POOLFERRY_CONFIG": folder, "POOLFERRY_STATE": f"{folder}/state"}),
            contextlib.redirect_stdout(told),
            contextlib.redirect_stderr(told),
        ):
            code = main(["disks", "scan", "--identity", identity])
        told.flush()
        assert (code, told.buffer.getvalue()) == (0, b""), told.buffer.getvalue()
        assert not (Path(folder) / "state").exists()
    return code


def requested(said: bytes) -> object:
    """Return the command by which a gate answers; it only reads, and is a program that the gate knows."""
    asked = parse_request(said[: 1 << 17].decode("utf-8", "surrogateescape"))  # the kernel takes no longer variable
    answer = admit_reading(asked, Gate(reads=("/srv/photos",)))
    assert (answer.effect, answer.host) == (Effect.READS, None)
    assert answer.argv[0] in ("sh", "find", "getfattr", "rsync", "env", "cat", "getfacl"), answer
    return answer


REQUESTS = (
    b"env LC_ALL=C rsync --server --sender -vlogDtprxe.iLsfxCIvu --numeric-ids . /srv/photos/",
    b"env LC_ALL=C.UTF-8 sh -c 'the text' look-at-source.sh /srv/photos whole",
    b"rsync --version --version",
    b"find /srv/photos/ -xdev -mindepth 1 -printf '%P//%y\\t%s\\t%n\\t%i\\t%b\\0'",
)
HEADERS = [
    *(b"From", b"To", b"Subject", b"Date", b"Message-ID", b"Auto-Submitted"),
    *(b"Content-Type", b"Content-Transfer-Encoding", b"MIME-Version"),
]
FACTS = (
    b"POOLFERRY_EVENT=failed\0POOLFERRY_JOB=photos\0POOLFERRY_RUN=17\0POOLFERRY_WHY=no room on \xff\0POOLFERRY_MOVED_BYTES=123456\0"
    b"POOLFERRY_SECONDS=75.2\0POOLFERRY_DISK=red\0"
    b'{"event": "failed", "report": {"hint": "remove \xc3\xa4", "warnings": ["a", "b"], "steps": [{}]}}'
)
OUR_JOB = 'engine = "rsync"\nsource = "/srv/photos"\ntarget = "offsite"\n'
OUR_DISK = '[set.offsite]\n[disk.red]\nset = "offsite"\nidentity = "0f0e0d0c-1111-2222-3333-444455556666"\n'
# The last one is what blkid makes of a disk whose ISO 9660 has other things than its date where that stands.
IDENTITIES = (
    b"3e6be9de-8139-11d1-9106-a43f08d823a6",
    b"12AB-34CD",
    b"2026-11-25-14-30-00-00",
    b"9043141241953312256",
    b"2_%i-/$-(i-d)-@_-;--`x",
)
ZFS_FAILURE = (
    b"a stranger connected from 10.0.0.7:39000 in place of the sender\nrejected connection from 10.0.0.8:1\nno sender has connected\n"
    b"someone else listens on 10.0.0.1:50000 in place of our receiver; nothing was sent\n"
    b"cannot receive incremental stream: destination vault/copies/photos has been modified\nsince most recent snapshot\n"
)
CHANGES = (
    b"=dataset tank/photos\n=at /tank/ph\\0040otos\nM\t/\t/tank/ph\\0040otos/in\n+\tF\t/tank/ph\\0040otos/a\n=end\n"
)
RIGHTS = b"=user ferry\n=groups ferry adm\n=readonly on\n=at tank\nPermissions:\n\tuser ferry create,mount\n\teveryone send\n"
ALLOWED = b"---- Permissions on tank/photos ----\nLocal+Descendent permissions:\n\tuser ann create,mount\n\tgroup (unknown: 7) send\n"
ATTRIBUTES = (
    b"# file: a\\040b\nuser.colour=0x626c7565\nsystem.posix_acl_access=0x02\n\n# file: c\nsecurity.capability=0x01\n\n"
)
SPACE = b"free\t1024\navailable\t99\nvault/copies/photos@a\t7\t1700000000\t5\n"
UNIT = (
    b"[Service]\nEnvironment=A=b\nExecStart=-/usr/bin/syncoid -r tank/a \\\n  vault/a\nExecStartPost=/bin/sh -c 'curl https://hc-ping.com/1'\n"
    b"Nice=3\n[Timer]\nOnCalendar=Mon..Fri *-*-01 0/2:30:00\nOnUnitActiveSec=1h 5min\n"
)
SCRIPT = (
    b'#!/bin/sh\nset -e\nS=tank\nfor d in a b; do\nsyncoid --skip-parent $S/$d "vault/$d" || { mail -s x root; exit 1; }\ndone\ncat <<E\nx\nE\n'
    b"0 1 * * * if syncoid a/b c/d; then wget https://x/$?; else :; fi # x\n1 2 * * * /a.sh $(x `y` ${z:-1})\nf() { nice -n 3 ssh h syncoid a b; }\n"
)
RSNAPSHOT = (
    b"snapshot_root\t/backup/\nretain\talpha\t6\nretain\tdaily\t7\nexclude\t/home/*/x\nssh_args\t-p 2\nrsync_long_args\t--delete --x\n"
    b"rsync_short_args\t-ax\nbackup\t/home/\tlocal/\tone_fs=1,x\nbackup\troot@web:/var/\tweb/\nbackup\t/\tall/\n0 1 * * * root rsnapshot alpha\n"
)
BTRBK = (
    b"target_preserve 20d 10w *m\nssh_identity /k\nvolume /mnt/p\n target send-receive /mnt/b\n subvolume home\n  target ssh://nas:22/mnt/b\n"
    b"  target raw /x\nvolume ssh://a@b/c\n subvolume d # e\n0 1 * * * root btrbk run && wget https://x/$?\n"
)
ZREPL = (
    b"jobs:\n- &j\n  type: push\n  connect: {type: local, listener_name: x, client_identity: me}\n  filesystems: {'a<': true, 'a/b<': false, 'a/b/c': true}\n"
    b"  send: {encrypted: true, bandwidth_limit: {max: 2 MiB}}\n  snapshotting: {type: periodic, interval: 10m}\n  pruning:\n"
    b"    keep_sender: [{type: grid, grid: 1x1h(keep=all) | 24x1h}, {type: last_n, count: 3}]\n    keep_receiver: [{type: grid, grid: 4x30d}]\n"
    b"- {type: sink, serve: {type: local, listener_name: x}, root_fs: vault/z}\n"
    b"- {type: pull, root_fs: p, interval: 1h, connect: {type: tls, address: 'n:1'}}\n"
    b"- {type: source, serve: {type: tls}, filesystems: {'q<': true}}\n- {type: snap, filesystems: {'d<': true}, pruning: {keep: [{type: grid, grid: 7x1d}]}}\n"
)
BORGMATIC = (
    b"location:\n  source_directories: [/home, /etc, '/x*']\n  repositories: [{path: /mnt/b/h.borg}, ssh://a/./b]\n"
    b"  exclude_patterns: ['*.pyc', 'sh:/home/*/x', 're:x']\n"
    b"retention: {keep_daily: 7, keep_within: 3H}\nupload_rate_limit: 100\nssh_command: ssh -i k\nhooks:\n  healthchecks: {ping_url: https://hc-ping.com/1}\n"
    b"  ntfy: {topic: t}\n  apprise: {services: [{url: 'gotify://a'}]}\n"
)
CRONTAB = (
    b"MAILTO=me\n*/15 * * * * root syncoid --recursive --sshport=22 tank/a root@nas:vault/a && syncoid tank/b vault/b | logger -t x\n"
    b"@daily sanoid --cron\n[tank/a]\n use_template = x\n[template_x]\n hourly = 3\n"
)
JOB_FILE = (
    b'engine = "rsync"\nsource = "/srv"\ntarget = "b"\nevery = "1h"\nafter = ["x"]\n[hooks]\nbefore = [["a", "b"], ["c"]]\n[pipe]\n'
    b'ssh-options = ["-i", "/k"]\n[place.b]\npath = "/b"\n[set.s]\n[disk.d]\nset = "s"\nidentity = "1"\n[notice.n]\nkind = "mail"\nto = ["a@b"]\n'
)
KIT_CONTENT = (
    b'{"create": "zpool create tank sda", "above": ["zfs create tank/a"], "own": "zfs create tank/a/b", "source": "tank/a/b", "datasets": '
    b'{"tank/a/b": {"guid": {"value": "1", "received": "-", "source": "-"}}}, "snapshots": [["tank/a/b@x", "1", "2"]], "users": {"1": "a"}}'
)
LAYERS = b"tank\t1\n\t/dev/sda\t2\nsda \nsda1 sda\nloop0 /img\n/dev/zvol/tank/v\t../../zd0\n"
UNITS = (
    b"Id=poolferry.service\nUnitFileState=enabled\nActiveState=active\nFragmentPath=/x\nDropInPaths=/y /z\n\nId=other\n"
)

TARGETS += (
    Target("zfs changes", lines_of(zfs_parse.parse_changes), (CHANGES,)),
    Target("zfs receivers", texts_of(lambda lines: zfs_parse.parse_receiving(lines, "tank")), (b"=process 7\nzfs\nreceive\n-u\ntank/a\n",)),
    Target("zfs rights", texts_of(zfs_parse.parse_rights), (RIGHTS,)),
    Target("zfs newest", lines_of(zfs_parse.parse_newest), (b"tank/a@b\t1\t2\ntank/a@c\t2\t3",)),
    Target("zfs property list", lines_of(zfs_parse.parse_property_listing), (b"tank/a\tguid\t7",)),
    Target("zfs plain copies", texts_of(lambda lines: zfs_parse.parse_plain(lines, ("tank/a", "tank/b"))), (b"0\n1\n=end",)),
    Target("zfs send sizes", texts_of(zfs_parse.parse_sizes), (b"size\t12\nsize",)),
    Target("zfs space", told(lambda said: parse_space(said, "vault/copies/photos")), (SPACE,)),
    Target("zfs readable", told(lambda said: parse_readable_datasets(said, sides.job())), (b"vault/a\t5\t6\nvault/a@x\t1\n",)),
    Target("zfs digests", lines_of(lambda lines: parse_checksum_support(lines, COPIES)), (b"=can sha256\nvault/copies/photos/a\tvisible",)),
    Target("zfs root's files", told(parse_inside), (b"a\0b c\0",)), Target("zfs frees", told(zfs_space._parse_frees), (b"reclaim\t5\n",)),
    Target("zfs allowed", texts_of(lambda lines: parse_delegations(lines, "tank")), (ALLOWED,)),
    Target("pool's layers", texts_of(lambda lines: parse_storage_layers(dict.fromkeys(("=pools", "=blocks", "=loops", "=volumes"), lines), ())), (LAYERS,)),
    Target("kit's content", text_of(parse_kit_content), (KIT_CONTENT,)),
    Target("attributes", lines_of(parse_attributes), (ATTRIBUTES,)),
    Target("copy's attributes", told(lambda said: [*(parse_copy_attributes(iter(said.split(b"\n"))) or ())]), (ATTRIBUTES, b"absent\n")),
    Target("stored tree", told(lambda said: [*stored_entries(split_records((said,)), folder="/tmp")]), (STORED,)),
    Target("reader's records", collected, (b"P\t1\t1\t5\0F\trotten\tdetail\ta\0S\t1\t1\t5\t1\t0\0",)),
    Target("remembered guard", text_of(parse_guard_memory), (b'{"files": 3, "seen": [["2026-03-04T05:06:07+00:00", 5]], "shares": [0.5]}',)),
    Target("remembered source", text_of(parse_source_state), (b'["gone", "2026-03-04T05:06:07+00:00", "why", "hint"]',)),
    Target("remembered identity", text_of(parse_identity), (b"7 8 tank/photos",)),
    Target("remembered token", text_of(parse_attempts), (b"00ff00ff 3 7",)),
    Target("lease", lease._parse, (b'{"purpose": "restore", "since": "2026-03-04T05:06:07+00:00", "pid": 7}',)),
    Target("key", lambda said: authentication_key._parse(said, "key"), (b'{"format": 1, "key": "00ff", "made": "2026-03-04T05:06:07+00:00"}',)),
    Target("units", text_of(lambda said: parse_units(said, lambda _: "")), (UNITS,)),
    Target("crontab", migrated, (CRONTAB, UNIT, SCRIPT)),
    Target("rsnapshot", migrated_from("rsnapshot"), (RSNAPSHOT,)),
    Target("btrbk", migrated_from("btrbk"), (BTRBK,)),
    Target("zrepl", migrated_from("zrepl"), (ZREPL,)),
    Target("borgmatic", migrated_from("borgmatic"), (BORGMATIC,)),
    Target("job file", configured, (JOB_FILE,)),
    Target("kit's files", reviewed, (JOB_FILE,)),
    Target("zfs failure", lambda said: ZFS.explain(trees.failed(printable_text(said))), (ZFS_FAILURE,)),
    Target("notices", notified, (FACTS,)),
    Target("wake-on-lan's memory", remembered, (b'{"woken": 1795187460.5, "users": {"17": 1795187460.5, "18": 1795187461}}',)),
    Target("udev's identity", plugged_in, IDENTITIES),
    Target("gate's request", requested, REQUESTS), Target("sshd's settings", told(parse_accepted_variables), (b"acceptenv L*\npermituserenvironment no\n",)),
)  # fmt: skip


def usable(found: object) -> None:
    """Check that a value can be shown and calculated with."""
    if isinstance(found, datetime):
        assert found.astimezone(timezone(timedelta(hours=14))) + timedelta(days=365) > found
        assert found.astimezone(timezone(timedelta(hours=-12))) - timedelta(days=365) < found
    elif isinstance(found, dict):
        usable((*found, *found.values()))
    elif isinstance(found, tuple | list):
        for each in found:
            usable(each)
    elif hasattr(found, "__dataclass_fields__"):
        for name in found.__dataclass_fields__:
            usable(getattr(found, name))
    elif isinstance(found, str):
        found.encode("utf-8", "surrogatepass")

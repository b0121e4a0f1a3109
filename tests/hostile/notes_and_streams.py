"""More doors: streams and requests of strangers, what programs of this machine say, and notes of ours that a crash or a disk may damage."""

import contextlib
import gzip
import sqlite3
import tempfile
from collections.abc import Callable
from datetime import date
from io import BytesIO
from pathlib import Path

from orchestrator.app import control, rename_job, uncovered, unknown_disk
from orchestrator.app.settings import WrongRequest
from orchestrator.domain import kit
from orchestrator.domain.act import parse_request
from orchestrator.domain.answers import seal_text
from orchestrator.domain.gate import parse_hello
from orchestrator.domain.place import Location
from orchestrator.domain.problem import parse_unseen
from orchestrator.domain.run_progress import parse_progress_note
from orchestrator.domain.scrub import parse_sighting
from orchestrator.engines.pool.parse import parse_scrub
from orchestrator.engines.prune.model import parse_folder, parse_survey
from orchestrator.engines.rsync import file_forecast, own_look
from orchestrator.engines.rsync import survey as rsync_survey
from orchestrator.engines.rsync.look_record import (
    COPY,
    SOURCE,
    ListingDifference,
    LookHeader,
    RecordReader,
    RecordUnusable,
    RecordWriter,
    pack_entries,
)
from orchestrator.engines.rsync.source_summary import survey_tree
from orchestrator.engines.zfs.commands.progress import ZfsMeter
from orchestrator.engines.zfs.holds.survey import parse_holds
from orchestrator.engines.zfs.model import parse_flags
from orchestrator.engines.zfs.plan.hold_names import (
    hold_bookmark_name,
    hold_tag,
    parse_bookmark_guid,
    replication_target_id,
)
from orchestrator.engines.zfs.recovery.kit_diff import read_kit
from orchestrator.engines.zfs.survey.packed_list import pair_names
from orchestrator.engines.zfs.survey.resume_token import parse_token
from orchestrator.fleet import credentials, enrolment
from orchestrator.gate.receive import parse_marks
from orchestrator.gate.stream_head import missing_bytes, parse_head
from orchestrator.gate.stream_records import RecordWatch
from orchestrator.history import arrivals, packed_text
from orchestrator.history.database import parse_stored
from orchestrator.history.store import open_history
from orchestrator.process.handover import parse_handover
from orchestrator.process.holders import parse_line, parse_waits
from orchestrator.process.moved_dataset import find_moved_dataset
from orchestrator.runner import arrivals as weighed
from orchestrator.runner import lock_holders, source_freeze
from orchestrator.runner.decide import parse_ground
from orchestrator.runner.disk import lease
from orchestrator.runner.verify import read_budget
from orchestrator.verify.manifest import read_manifest, read_names
from orchestrator.views.format import parse_instant
from orchestrator.web.act_forms import BadForm, FormToken, parse_act_form
from orchestrator.web.pages import parse_year
from tests.engines.rsync import builders as trees
from tests.engines.zfs import sides
from tests.engines.zfs.survey.token_maker import packed, token, xdr
from tests.gate.streams import RECORDS, begin, compound
from tests.hostile.answers import (
    COPIES,
    DISK,
    DRY_RUN,
    HERE,
    KIT_CONTENT,
    Target,
    configured,
    reader,
    recorded,
    text_of,
    told,
)

REAL_STREAMS = tuple(
    gzip.decompress(file.read_bytes()) for file in sorted((HERE.parent / "tests/gate/recorded").glob("*many-*"))
)
LISTED = (
    b"//d\t7\t1.5\t755\t0\t0\t2\t7\t\t1.0000000000\0a//f\t3\t1.5\t644\t0\t0\t2\t8\t\t1.0000000000\0"
    b"d//l\t3\t1.5\t777\t0\t0\t1\t9\t../to\t1.0000000000"
)
SIZES = b"./a//f\t3\t1\t7\t8\0./in//d\t0\t2\t9\t0\0"
NOTE = (
    b'{"run": 7, "done_bytes": 5, "expected_bytes": null, "bytes_per_s": 3, "left_s": 3, "at": "2026-03-04T05:06:07+00:00",'
    b' "waits": "for a limit"}'
)
ACT = b'{"act": "restore", "user": "ann", "job": "photos", "point": "2026-03-04T050607Z", "paths": ["612f62"]}'
FORM = b"token=%b&act=restore&job=photos&point=2026-03-04T050607Z&path=a%%2Fb&from=front"
UNKNOWN = b'{"set": "offsite", "says": "a disk", "hint": "poolferry disks", "at": "2026-03-04T05:06:07+00:00"}'
UNCOVERED = b'{"datasets": ["tank/a"], "folders": ["2f61"], "at": "2026-03-04T05:06:07+00:00", "trouble": ""}'
BUDGET = (
    b'{"point": "p", "after": "6162", "took_s": 1.5, "counts": [["rotten", 1]], "entries": 1, "files": 1, "bytes": 5}'
)
RENAME = '{"before": "a", "now": "b", "texts": [["/x", "y"]], "moves": [["/a", "/b"]]}'
STATUS = b"Name:\tzfs\nState:\tD (disk sleep)\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n"
ARRIVED = b"2026-03-04T05:06:07+00:00\t77\ttank/a\n"
PRUNED = b"1772600767\n77\nvault/copies/photos@a\t7\t8\t1772600700\t5\t6\t0\t-\n"


def record() -> bytes:
    """A record as a look of our own writes it."""
    header = LookHeader(
        settings="s",
        made_with="s",
        point="p",
        source="ext4 / / 7",
        copy="",
        made_ns=5,
        whole_ns=4,
        since=1,
        verified=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        writer = RecordWriter(f"{folder}/look", header)
        writer.add(SOURCE, pack_entries(LISTED.split(b"\0")))
        writer.add(COPY, pack_entries(LISTED.split(b"\0")))
        writer.end(2, 1)
        return Path(folder, "look").read_bytes()


def recorded_look(said: bytes) -> object:
    with contextlib.suppress(RecordUnusable):
        read = RecordReader(BytesIO(said))
        return read.header, [frame.entries() for _, frame in read.frames()], read.entries, read.files
    return None


def candidates(said: bytes) -> object:
    """The paths that two listings make candidates: damaged now, and as it was recorded."""
    difference = ListingDifference()
    difference.exchange(LISTED.split(b"\0"), said.split(b"\0"))
    with contextlib.suppress(own_look.WholeLook):
        return own_look.choose_candidates(difference, ListingDifference(), lambda _: None, patterns=True)
    return None


def received(said: bytes) -> object:
    """Return what a gate knows of a stream before zfs gets any of it, in pieces as the relay reads them."""
    at = 0
    while needed := missing_bytes(said[:at]):
        at += needed
        if at > len(said):
            return None  # it ended before it began
    head = parse_head(said[:at])
    if head.of_several is not None:
        watch = RecordWatch(head.of_several, skip=head.skip)
        while at < len(said):
            watch.follow(said[at : at + 65536])
            at += 65536
    return head


def sent_size(said: bytes) -> object:
    meter = ZfsMeter()
    for at in range(0, len(said), 4096):
        meter.heard(said[at : at + 4096])
    return meter.expected


def posted(said: bytes) -> object:
    token = FormToken()
    token.value = TOKEN
    with contextlib.suppress(BadForm):
        return parse_act_form(said, token, "ann")
    return None


def refused(parse: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """A parser whose ValueError its callers say as the reason of a refusal."""

    def read(said: bytes) -> object:
        with contextlib.suppress(ValueError):
            return parse(said)
        return None

    return read


def renamed(said: bytes) -> object:
    """The record of a rename that was cut, as the command and as each run reads it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(said)
        file.flush()
        with contextlib.suppress(WrongRequest):
            rename_job.read_record(file.name)
        lock_holders.refuse_half_renamed(file.name, "photos")
    return None


def fact_of(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    """A parser of a fact of the history, which calls all that cannot be read damage."""
    return told(text_of(parse))


def leased(said: bytes) -> object:
    """A lease of a disk as others find it, cut or not."""
    return lease._lease(lease.LeasePurpose.COMMAND, DISK, lease._parse(said), STAT)


def read_files(path: Path) -> object:
    return [*read_manifest(str(path))[1]], [*read_names(str(path))]


def read_history(path: Path) -> object:
    with open_history(str(path)) as history:
        return history.views.runs(None, 5), history.views.totals()


def a_history(folder: Path) -> bytes:
    path = folder / "new.sqlite"
    with open_history(str(path)):
        pass
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("VACUUM")
    connection.close()
    return path.read_bytes()


TOKEN = "a" * 32
SIGNED = kit.KitDigests(files={kit.KIT_FILES[0]: "0" * 64}, before={}, key="a", tag="b")
DIGESTS = f"{SIGNED.text}{kit._TAG}a:b\n".encode()
SHIPPED = HERE.parent / "jobs"
PAIRS: dict[str, int | str | bool] = {
    "object": 5,
    "offset": 6,
    "toguid": 7,
    "toname": "tank/a@b",
    "fromguid": 8,
    "bytes": 9,
    "rawok": True,
}
FOLDER = b"1772600767\x007 1772600767.5 d points/2026-03-04T050607Z\x008 1772600767.5 d .poolferry/trash\0"
OURS = replication_target_id(9, Location(path="vault/copies/photos"))
KEPT = hold_bookmark_name(OURS, 5)
PINS = (
    f"=user 0\n=pools\ntank\t7\n=bookmarks\ntank/a#{KEPT}\t1772000000\n=snapshots\n1\t8192\t6\ttank/a@b\n=holds\n"
    f"tank/a@b\t{hold_tag(OURS)}\tTue Mar  3 00:00 2026\n=end\n"
).encode()
STAT = Path(__file__).stat()
MORE: tuple[Target, ...] = (
    Target("tree's sizes", lambda said: survey_tree(trees.job(target=trees.THERE), reader(said)), (SIZES,)),
    Target("planned files", told(lambda said: [file_forecast._parse_planned(line) for line in said.split(b"\n")]), (DRY_RUN,)),
    Target("look's record", recorded_look, (record(),)),
    Target("look's listing", told(candidates), (LISTED,)),
    Target("look's new entries", told(lambda said: [own_look._created(line) for line in said.split(b"\n")]), (DRY_RUN,)),
    Target("stream", received, (begin(), compound() + b"".join(RECORDS), compound(), *REAL_STREAMS)),
    Target("marks of arrivals", text_of(parse_marks), (b"tank/a@b\tguid\t7\ntank/a@b\tcreatetxg\t8\n",)),
    Target("moved dataset", lambda said: find_moved_dataset(7, 0, Location(path="tank/a"), reader(said)),
           (b"=above\ttank\n1\ttank/photos\n=end\n", b"1\ttank/photos\n=within\ttank\n")),
    Target("packed list", told(pair_names), (xdr({"tosnap": "a"}), packed({"tosnap": "a", "n": 7}, "<"))),
    Target("stream's size", sent_size, (b"full\ttank/a@b\t7\nsize\t7\n",)),
    Target("lease's holder", leased, (b'{"purpose": "restore", "since": "2026-03-04T05:06:07+00:00", "pid": 7}', b'{"since": "9999-12-31"}')),
    Target("newest scrub", told(parse_scrub), recorded("engines/pool/recorded")),
    Target("holds and bookmarks", told(lambda said: parse_holds(said.split(b"\n"), Location(path="tank"), sides.job())), (PINS,)),
    Target("bookmark's name", refused(lambda said: parse_bookmark_guid(said.decode())), (KEPT.encode(),)),
    Target("token in XDR", text_of(parse_token), (token(xdr(PAIRS)).encode(),)),
    Target("send's flags", text_of(parse_flags), (b"wLce", b"-")),
    Target("gate's hello", refused(parse_hello), (b'{"poolferry": "1", "protocols": [1], "gate": "g", "rights": ["reads"]}',)),
    Target("damaged names", told(rsync_survey._parse_names), (b"a\\nb\nc\\xff",)),
    Target("folder's points", told(lambda said: parse_folder(said, root=COPIES)), (FOLDER,)),
    Target("program's line", lambda said: parse_line(said.decode(errors="replace").split("\0")), (b"zfs\0receive\0" + b"-x\0" * 300 + b"tank/a",)),
    Target("year of an address", lambda said: parse_year(said.decode("latin-1"), date(2026, 3, 4)), (b"2025",)),
    Target("point of an address", refused(lambda said: parse_instant(said.decode("latin-1"))), (b"2026-03-04T050607Z", b"2024-11-03 02:31")),
    Target("shipped job files", configured, tuple(file.read_bytes() for file in sorted(SHIPPED.glob("*.toml")))),
    Target("pruned points", told(lambda said: parse_survey(said, root=COPIES)), (PRUNED,)),
    Target("kit's digests", refused(lambda said: kit.parse_digests(said.decode("ascii"))), (DIGESTS,)),
    Target("kit's plain digests", refused(kit.parse_digest_lines), (kit.digest_lines({"RECOVERY.md": b"type", "\udcff": b""}),)),
    Target("kit's facts", told(text_of(lambda text: read_kit(text, "tank/a/b"))), (KIT_CONTENT,)),
    Target("order", refused(parse_request), (ACT,)),
    Target("form", posted, (FORM % TOKEN.encode(),)),
    Target("daemon's answer", control._parse_answer, (b'{"accepted": true, "act": 7, "said": "x", "later": true}',)),
    Target("centre's token", refused(lambda said: enrolment.parse_token(said.decode())), (b"poolferry_nas_0123abcd." + b"a" * 32,)),
    Target("host's identity", lambda said: credentials._parse(said, "fleet.json"), (b'{"format": 1, "host": "a", "role": "b", "password": "c"}',)),
    Target("handed over", lambda said: parse_handover(said, b"me"), (b"me\x0010.0.0.1\0env sh -c x look.sh",)),
    Target("arrivals", arrivals._parse, (ARRIVED,)),
    Target("note of progress", parse_progress_note, (NOTE,)),
    Target("process's state", told(lambda said: parse_waits(said.decode(errors="replace"))), (STATUS,)),
    Target("cut rename", renamed, (seal_text(RENAME).encode(),)),
    Target("unknown disk", text_of(unknown_disk._parse), (UNKNOWN,)),
    Target("remembered folders", fact_of(uncovered._parse), (UNCOVERED,)),
    Target(
        "remembered scrub",
        fact_of(parse_sighting),
        (b'["2026-03-04T05:06:07+00:00", "2026-03-04T05:06:08+00:00"]', b'["2026-03-04T05:06:07+00:00", "2026-03-04T05:06:08+00:00", 0.25]'),
    ),
    Target("remembered freeze", fact_of(source_freeze._parse_owed), (b'{"run": 7, "since": "2026"}',)),
    Target("remembered unseen copies", text_of(parse_unseen), (b'["2026-03-04T05:06:07+00:00", "why"]',)),
    Target("remembered ground", fact_of(parse_ground), (b"/srv: on ext4, mounted\n: no",)),
    Target("remembered weights", text_of(lambda text: weighed._parse_weights({weighed._WEIGHTS: text})), (b'{"a": [1, 2, 3]}',)),
    Target("remembered reading", fact_of(read_budget._PartialRead.parse), (BUDGET,)),
    Target("stored text", fact_of(lambda text: parse_stored(packed_text.unpack(text))), (b'{"a": [1]}', packed_text.pack(f'["{"x" * 2000}"]').encode())),
)  # fmt: skip

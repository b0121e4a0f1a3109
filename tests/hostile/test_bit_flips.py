"""Each bit of the small files beside copies: whatever flips is found, or harmless; nothing wrong is believed silently.

The last test looks at every file that poolferry writes: a new kind has to be sorted in there.
"""

import os
import random
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.app.bootstrap import unpack_configuration
from orchestrator.app.rename_job import RenameRecord, read_record, record_text
from orchestrator.app.settings import WrongRequest
from orchestrator.disks.marker import marker_text, parse_marker
from orchestrator.domain.authentication import AuthenticationKey, Authenticity, judge_marker, tag_marker
from orchestrator.domain.errors import HistoryError, OrchestratorError, VerificationFailed
from orchestrator.domain.kit import DIGESTS, KitDigests, is_sealed, parse_digests, seal_digests
from orchestrator.domain.rotation import Disk
from orchestrator.engines.rsync import parse
from orchestrator.history import arrivals
from orchestrator.history.store import open_history
from orchestrator.runner.disk.lease import LeasePurpose, find_lease, request_disk
from orchestrator.runner.recovery_kit import write_archive
from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import ManifestHeader, read_manifest, read_tag, write_manifest
from tests.daemon.daemon_world import daemon
from tests.ferry import Ferry
from tests.history.populated import populate
from tests.planners.rotation_world import marker
from tests.whole.house import facts

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def flips(text: bytes) -> Iterator[bytes]:
    """The same bytes with one bit changed, for each bit."""
    for bit in range(len(text) * 8):
        changed = bytearray(text)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.parametrize("coarse", ["true", "false"])
def test_a_targets_marker(coarse: str) -> None:
    text = b'{"format": 1, "job": "photos", "coarse": %s}' % coarse.encode()
    true = parse.parse_marker(text)
    for changed in flips(text):
        try:
            found = parse.parse_marker(changed)
        except OrchestratorError:
            continue
        assert found == true or (found is not None and found.job != "photos"), changed


def test_a_disks_marker() -> None:
    """No other disk, set, host or count is believed: each flip ends the marker or its tag, or changes our words about it alone."""
    key, disk = (
        AuthenticationKey(bytes(range(32)), NOW),
        Disk(name="red", set="offsite", identity="uuid", content="ext4"),
    )
    true = tag_marker(marker(), disk, key)
    for changed in flips(marker_text(true).encode()):
        found = parse_marker(changed)
        assert found in (None, true) or judge_marker(found, disk, key, tagged=True) is not Authenticity.AUTHENTIC, (
            changed
        )


def test_a_manifest(tmp_path: Path) -> None:
    path, key = str(tmp_path / "manifest.gz"), AuthenticationKey(bytes(range(32)), NOW)
    header = ManifestHeader(
        job="photos", source="/srv/photos", point="2026-11-20T120000Z", digest="xxh128", created=NOW
    )
    entries = [
        ManifestEntry(b"", "d", 0, 1, 0o755, 0, 0, 2, 1, b"", "-"),
        ManifestEntry(b"file", "f", 9, 1, 0o644, 0, 0, 1, 2, b"", "xxh128:" + "ab" * 16),
    ]
    write_manifest(path, header, entries, key=key)
    whole = Path(path).read_bytes()
    for changed in flips(whole):
        Path(path).write_bytes(changed)
        try:
            tag = read_tag(path, key)
            found = list(read_manifest(path)[1])
        except VerificationFailed:
            continue
        assert (tag.right, found) == (True, entries), "a bit of the packing's own heading"


def test_the_ledger_of_a_gate(tmp_path: Path) -> None:
    """No point of ours comes at another time or with another number: what cannot be believed counts as not written."""
    state = str(tmp_path)
    with arrivals.open_ledger(state, "laptop") as ledger:
        ledger.note([("vault/a", "1234567", NOW), ("vault/a", "1234568", NOW + timedelta(days=1))])
        ledger.note_numbered("/in", ["2026-11-20T120000Z.1", "2026-11-21T120000Z.2"], NOW, after=9)
    path = tmp_path / arrivals.FOLDER / "laptop"
    whole, came, numbers = path.read_bytes(), arrivals.read_arrivals(state), arrivals.read_numbers(state, "/in")
    assert (len(came), len(numbers)) == (4, 2)
    for changed in flips(whole):
        path.write_bytes(changed)
        found = {key: at for key, at in arrivals.read_arrivals(state).items() if key[0] in ("vault/a", "/in")}
        assert found.items() <= came.items(), changed
        assert arrivals.read_numbers(state, "/in").items() <= numbers.items(), changed


def test_the_archive_of_a_kit(tmp_path: Path) -> None:
    """A byte of each heading and file: no job is lost or changed in a takeover; what fills an archive up is no matter."""
    path = tmp_path / "configuration.tar"
    files = {"configuration/targets.toml": b"[place.vault]\n", "configuration/jobs/photos.toml": b"daily = 30\n"}
    write_archive(str(path), tuple(files.items()))
    whole = path.read_bytes()
    true = unpack_configuration(whole)
    assert true.items() >= files.items()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        with suppress(VerificationFailed):
            assert unpack_configuration(bytes(changed)) == true, at


def test_the_digests_beside_copies() -> None:
    key = AuthenticationKey(bytes(range(32)), NOW)
    before = {"history.sqlite": ("cd" * 32, "ef" * 32)}
    true = KitDigests(files=dict.fromkeys(("RECOVERY.md", "history.sqlite"), "ab" * 32), before=before)
    text = seal_digests(true, "photos", key).encode()
    assert is_sealed(parse_digests(text.decode()), "photos", key)
    assert not is_sealed(parse_digests(text.decode()), "papers", key)
    for changed in flips(text):
        with suppress(ValueError):
            assert not is_sealed(parse_digests(changed.decode("ascii")), "photos", key), changed


@pytest.mark.slow
def test_each_file_beside_copies(ferry: Ferry) -> None:
    """A verification names it and a takeover refuses it, but for the sums; the next run writes it anew, says so once, and all is well again."""
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    folder, chance = ferry.target() / ".poolferry", random.Random(3)
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=folder, check=True)
    for name in BESIDE:
        flip(folder / name, chance)
        told = ferry.run("verify", "photos")
        assert (told.code, f"{name} beside the copies in" in told.out + told.err) == (1, True), told
        elsewhere = ("--config", str(ferry.root / "none"), "--state", str(ferry.root / "none"))
        taken = ferry.run(*elsewhere, "restore", "bootstrap", "--plan", ferry.target().name)
        if name != DIGESTS:  # sums that say nothing are a warning: the other files may be all that is left
            assert (taken.code, name in taken.out + taken.err) == (1, True), taken
        status = ferry.run("status")
        assert (status.code, f"{name} beside" in status.out) == (4, True), status
        ran = ferry.run("run", "photos")
        assert (ran.code, (ran.out + ran.err).count("written anew")) == (0, 1), ran
        assert "anew" not in ferry.run("run", "photos").err
        assert ferry.run("verify", "photos").code == 0
        assert ferry.run("status").code == 0
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=folder, check=True)
    (folder / "RECOVERY.md").unlink()
    (folder / "SHA256SUMS").unlink()
    assert "SHA256SUMS beside the copies in" in ferry.run("run", "photos").err
    assert ferry.run("verify", "photos").code == 0
    assert (folder / "RECOVERY.md").exists()


def test_the_record_of_a_rename_that_was_cut(tmp_path: Path) -> None:
    """Its texts become files of the configuration: none is written otherwise than it was meant."""
    true = RenameRecord(before="photos", now="pictures", texts={"/etc/p.toml": "daily = 30\n"}, moves=(("/a", "/b"),))
    path = tmp_path / "rename"
    path.write_text(record_text(true))
    assert read_record(str(path)) == true
    for changed in flips(path.read_bytes()):
        path.write_bytes(changed)
        with suppress(WrongRequest):
            assert read_record(str(path)) == true, changed


def test_the_note_of_a_restore_that_waits_for_a_disk(tmp_path: Path) -> None:
    """The disk is left alone as long as the note can be meant for now, and what else is in it is only told."""
    disk = Disk(name="red", set="offsite", identity="uuid", content="ext4")
    request_disk(disk, "poolferry restore run photos", str(tmp_path), NOW)
    (path,) = (tmp_path / "notes").iterdir()
    for changed in flips(path.read_bytes()):
        path.write_bytes(changed)
        lease = find_lease(disk, str(tmp_path), NOW, folder=str(tmp_path / "visits"))
        assert lease is None or (lease.kind, lease.disk) == (LeasePurpose.REQUESTED, "red"), changed


def test_pages_of_the_history(tmp_path: Path) -> None:
    path, copy = tmp_path / "history.sqlite", tmp_path / "copy.sqlite"
    with open_history(str(path)) as history, history.together():
        for number in range(300):
            history.remember("photos", f"key {number}", "x" * 200)
    with closing(sqlite3.connect(path)) as found, found:
        size = found.execute("PRAGMA page_size").fetchone()[0]
        unused = found.execute("PRAGMA freelist_count").fetchone()[0]
    assert unused == 0
    for page in range(os.path.getsize(path) // size):
        shutil.copyfile(path, copy)
        with copy.open("r+b") as file:
            file.seek(page * size)
            file.write(bytes(size))
        with pytest.raises(HistoryError), open_history(str(copy)) as history:
            history.check_when_due(NOW)


# What decides, by table; the other columns are texts for people, and those of tables that are not here decide nothing.
DECIDES = {
    "runs": "id job kind outcome resumed begun_at ended_at source target moved_bytes points",
    "points": "id job place name run taken_at made_at known_at entries bytes proved_at confirmed_at confirmed_by gone_at sound whole_at",
    "readings": "id point read_at scope entries files_read bytes_read sound counts left_out",
    "memory": "job key value",
    "problems": "id job place kind point paths number since_at tried ended_at",
    "drills": "run job place point drilled_at outcome whole proves seed files bytes differences",
    "disks": "disk name set_name identity content size serial model wwn generation written enrolled_at standing",
    "visits": "id disk arrived_at jobs outcome released_at safe",
    "whereabouts": "id disk since_at place",
    "rebuilds": "id pool begun_at top_guid lost kits ended_at",
    "kits": "job made_at guids",
    "owed": "job slot_at newest_at slots noted_at after_run tries tried not_before_at",
    "anchors": "job at_at schedule run",
    "pauses": "job since_at until_at",
    "snoozes": "disk since_at until_at",
    "acts": "id verb subject about asked_at ended_at well",
    "outbox": "seq subject key back",
}


CHECKED = b"history checked"  # the time of the last check, which the check itself writes


def decisive(path: Path) -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as found:
        found.text_factory = bytes
        return [_rows(found, table, columns.split()) for table, columns in DECIDES.items()]


def _rows(found: sqlite3.Connection, table: str, columns: list[str]) -> list[tuple[object, ...]]:
    rows = found.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1, 2").fetchall()  # noqa: S608
    return [row for row in rows if CHECKED not in row]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_no_flipped_bit_of_the_history_is_believed(tmp_path: Path, seed: int) -> None:
    path, copy = tmp_path / "history.sqlite", tmp_path / "copy.sqlite"
    populate(path)
    true, whole, chance = decisive(path), path.read_bytes(), random.Random(seed)
    used = [bit for bit in range(8 * len(whole)) if whole[bit // 8]]  # most of a small history is empty
    for bit in chance.sample(used, 400):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(changed)
        try:
            with open_history(str(copy)) as history:
                history.check_when_due(NOW)
            found = decisive(copy)
        except (HistoryError, sqlite3.Error):
            continue
        assert found == true, f"bit {bit}"


# Every kind of file that lies in the state directory and on a target, but for what was copied. Found: a run, a verification or a
# look says that it is not as it was. Harmless: it is written anew before anybody reads it, nothing is decided by it, or nobody
# but a person reads it; a kit is replaced each day, and a takeover finds its archive damaged.
BESIDE = ("RECOVERY.md", "configuration.tar", "history.sqlite", "SHA256SUMS")
FOUND = (
    r"state/history\.sqlite",
    r"state/authentication\.key",
    r"target/points/[^/]+\.manifest\.gz",
    r"target/\.poolferry/target\.json",
    *(rf"target/\.poolferry/{re.escape(name)}" for name in BESIDE),
)
HARMLESS = (
    r"state/history\.sqlite-journal",  # what a cut write left; an empty one when no write goes on
    r"state/locks/[^/]+",  # the lock is the kernel's; the number in the file is only told
    r"state/notes/kit-[^/]+/.*",  # made anew for each kit
    r"state/notes/drill-[^/]+/.*",  # made anew by each drill
    r"state/notes/look-[^/]+/.*",  # with a wrong digest it says nothing, and rsync looks at everything: tests/engines/rsync/test_own_look.py
    r"state/last-good/.*",  # read where the files have a mistake, and only while it is as its digest says: tests/daemon/test_reload.py
    r"target/\.poolferry/lock",
)  # fmt: skip
MANIFEST, KEY, KNOWN, MARKER, RECOVERY, TRAVELLED, SUMS = (
    FOUND[2], FOUND[1], FOUND[0], FOUND[3], *(rf"target/\.poolferry/{re.escape(name)}" for name in ("RECOVERY.md", "history.sqlite", "SHA256SUMS")),
)  # fmt: skip
# What says that the other is not as it was, or stands in for it, is damaged with it: a sample of all pairs.
TOGETHER = (
    (MANIFEST, KEY), (MANIFEST, KNOWN), (MANIFEST, MARKER), (MANIFEST, SUMS), (RECOVERY, SUMS), (TRAVELLED, SUMS), (KNOWN, TRAVELLED),
)  # fmt: skip


@pytest.mark.root
@pytest.mark.slow
def test_each_kind_of_file_that_is_written(ferry: Ferry, tmp_path: Path) -> None:
    """A few bits of each; afterwards a run, a verification and a look say so, or all is as if nothing had been."""
    source = ferry.job(more='daily = "02:30"\n')
    assert ferry.run("run", "photos").code == 0
    (source / "new").write_bytes(b"new")
    assert ferry.run("run", "photos").code == 0
    assert ferry.run("drill", "photos").code == 0
    with daemon(ferry) as clock:
        clock.says("read ")
        assert clock.end() == 0
    state, target = ferry.state, ferry.target()
    points = {
        name: facts(target / "points" / name) for name in os.listdir(target / "points") if not name.endswith(".gz")
    }
    files = [
        path for root in (state, target) for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()
    ]
    written = [path for path in files if not any(target / "points" / name in path.parents for name in points)]
    names = {
        path: f"{'state' if state in path.parents else 'target'}/{path.relative_to(state if state in path.parents else target)}"
        for path in written
    }
    unknown = [name for name in names.values() if not any(re.fullmatch(kind, name) for kind in FOUND + HARMLESS)]
    assert unknown == [], "say what a flipped bit in it does"
    shutil.copytree(state, tmp_path / "kept-state", symlinks=True)
    shutil.copytree(target, tmp_path / "kept-target", symlinks=True)
    chance = random.Random(7)
    for kinds in (*((kind,) for kind in FOUND + HARMLESS), *TOGETHER):
        harmed = [path for kind in kinds if (path := first_of(kind, names)) is not None]
        if len(harmed) < len(kinds):
            assert len(kinds) == 1, kinds
            continue
        for path in harmed:
            flip(path, chance)
        told, damaged = [names[path] for path in harmed], [path.read_bytes() for path in harmed]
        ran, verified = ferry.run("run", "photos"), ferry.run("verify", "photos", "--point", min(points))
        said = ran.out + ran.err + verified.out + verified.err
        assert "Traceback" not in said, (told, said)
        assert "mistake in poolferry" not in said, (told, said)
        assert {name: facts(target / "points" / name) for name in points} == points, told
        if MANIFEST in kinds or KEY in kinds:
            assert verified.code != 0, (told, said)
        for path, bad in zip(harmed, damaged, strict=True):
            if path.name in BESIDE and target in path.parents:
                # Neither command begins where history itself is damaged.
                stopped = KNOWN in kinds and ran.code == verified.code == 1
                found = f"{path.name} beside the copies in" in said and "written anew" in said
                anew = len(kinds) > 1 and path.read_bytes() != bad and sums_are_right(path.parent)
                assert stopped or found or anew, (told, said)
        if kinds[0] in HARMLESS:
            assert (ran.code, verified.code) == (0, 0), (told, said)
        for root, name in ((state, "kept-state"), (target, "kept-target")):
            shutil.rmtree(root)
            shutil.copytree(tmp_path / name, root, symlinks=True)


def sums_are_right(folder: Path) -> bool:
    return subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=folder).returncode == 0


def first_of(kind: str, names: dict[Path, str]) -> Path | None:
    """The first file of a kind that holds anything."""
    return next((path for path, name in names.items() if re.fullmatch(kind, name) and path.stat().st_size), None)


def flip(path: Path, chance: random.Random) -> None:
    """Flips a bit in each of some places of a file; of the key, which stands beside words about it, in the key itself."""
    content = bytearray(path.read_bytes())
    begin, end = 0, len(content)
    if path.suffix == ".key":
        begin = content.index(b'"key": "') + len(b'"key": "')
        end = content.index(b'"', begin)
    for _ in range(3):
        content[chance.randrange(begin, end)] ^= 1 << chance.randrange(8)
    path.write_bytes(content)

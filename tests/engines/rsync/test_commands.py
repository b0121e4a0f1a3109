"""Command lines: which flags for which pair of places and programs, and that names arrive whole on the far side."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.job import Job, PipeOptions
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.engines.rsync.commands import (
    append_command,
    both_support_xxh128,
    choose_compression,
    copy_command,
    digests_command,
    dry_run_command,
    path_filter,
    recopy_command,
    restore_command,
    rsync_version_command,
)
from orchestrator.engines.rsync.model import RsyncProgram, RsyncSurvey
from tests.engines.rsync.builders import EMPTY, HOST, NEW, ROOT, THERE, job, mirror, point, program, world

SOURCE_THERE = Location(path="/srv/photos", host=HOST)
FIRM = "-oBatchMode=yes -oForwardAgent=no -oForwardX11=no -oClearAllForwardings=yes"
SSH = f"ssh {FIRM} -oLogLevel=ERROR -oConnectTimeout=15 -oServerAliveInterval=15 -oServerAliveCountMax=4 -oCompression=no -T -x -a"
FAR = world(here=NEW, there=NEW)


def test_a_first_copy_within_this_machine_word_for_word() -> None:
    command = copy_command(job(), ROOT / ".poolferry/work", world(EMPTY), base=None)
    assert command.argv == (
        "rsync", "--archive", "--hard-links", "--acls", "--xattrs", "--xattrs", "--numeric-ids", "--one-file-system",
        "--filter=-p_.~poolferry-partial~", "--filter=-p_.poolferry-restoring.json",
        "--partial-dir=.~poolferry-partial~", "--whole-file", "--sparse", "--modify-window=-1",
        "--no-human-readable", "--stats", "--info=progress2", "--out-format=pf:%i|%l|%b|%C|%n", "--timeout=300",
        "--checksum-choice=xxh128", "--", "/srv/photos/", "/backup/photos/.poolferry/work/",
    )  # fmt: skip
    assert (command.effect, command.host) == (Effect.WRITES, None)


def test_a_copy_to_a_host_word_for_word() -> None:
    command = copy_command(job(target=THERE), THERE / ".poolferry/work", FAR, base=point(root=THERE))
    assert command.argv[10:] == (
        "--link-dest=/backup/photos/points/2026-03-03T050607Z", "--partial-dir=.~poolferry-partial~", "--sparse",
        "--modify-window=-1", "--no-human-readable", "--stats", "--info=progress2", "--out-format=pf:%i|%l|%b|%C|%n",
        "--timeout=300", "--checksum-choice=xxh128", "--compress", "--compress-choice=lz4", "-e", SSH,
        "--rsync-path=flock -s -w 60 -E 75 /backup/photos/.poolferry/lock rsync", "--", "/srv/photos/",
        "root@backup:/backup/photos/.poolferry/work/",
    )  # fmt: skip
    assert command.host is None  # rsync runs here and reaches over by itself


def copy(told: Job, seen: RsyncSurvey, **more: Any) -> Command:
    return copy_command(told, told.target.location / ".poolferry/work", seen, **{"base": None, **more})


COARSE = replace(EMPTY, coarse=True)

# (what is special, the job, what was seen, further arguments, flags that are there, flags that are not)
FLAGS: list[tuple[str, Job, RsyncSurvey, dict[str, Any], str, str]] = [
    ("local", job(), world(EMPTY), {}, "--whole-file --sparse --modify-window=-1", "-e --compress --link-dest --delete"),
    ("to a host", job(target=THERE), FAR, {}, "-e --rsync-path --compress", "--whole-file --protect-args"),
    ("from a host", job(source=SOURCE_THERE), FAR, {}, "-e --compress", "--whole-file --rsync-path"),
    ("coarse target", job(), world(COARSE), {}, "--whole-file", "--modify-window"),
    ("remote 3.0", job(target=THERE), world(here=NEW, there=program(3, 0, 6)), {}, "--protect-args",
     "--modify-window --compress --new-compress --checksum-choice"),
    ("remote 3.1.1", job(target=THERE), world(here=NEW, there=program(3, 1, 1)), {}, "", "--modify-window --new-compress"),
    ("remote 3.1.3", job(target=THERE), world(here=NEW, there=program(3, 1, 3)), {},
     "--modify-window=-1 --new-compress --protect-args", "--checksum-choice --compress-choice"),
    ("remote 3.2.3", job(target=THERE), world(here=NEW, there=program(3, 2, 3)), {},
     "--modify-window=-1 --protect-args --checksum-choice=xxh128 --compress-choice=lz4", "--new-compress"),
    ("remote unknown", job(target=THERE), world(here=NEW), {}, "--modify-window=-1", "--checksum-choice --compress"),
    ("no compression", job(target=THERE, compress="none"), FAR, {}, "--checksum-choice=xxh128", "--compress"),
    ("zstd", job(target=THERE, compress="zstd"), FAR, {}, "--compress-choice=zstd --compress-level=1", ""),
    ("not sparse", job(sparse=False), world(), {}, "--whole-file", "--sparse"),
    ("in place", mirror(in_place=True, sparse=False), world(), {}, "--inplace --no-whole-file",
     "--whole-file --partial-dir --sparse"),
    ("small files", job(), replace(world(), small=True), {}, "--whole-file", "--partial-dir"),
    ("contents", job(checksum=True), world(), {}, "--checksum", ""),
    ("little", job(acls=False, xattrs=False, hard_links=False, devices=False, numeric_ids=False, one_file_system=False),
     world(), {}, "--archive --no-D", "--acls --xattrs --xattrs --hard-links --numeric-ids --one-file-system"),
    ("excludes", job(excludes=("*.tmp", "- /a b")), world(), {}, "--exclude=*.tmp", ""),
    ("rate", replace(job(), pipe=PipeOptions(rate_limit=Bytes(5 << 20))), world(), {}, "--bwlimit=5120", ""),
    ("least rate", replace(job(), pipe=PipeOptions(rate_limit=Bytes(1))), world(), {}, "--bwlimit=1", ""),
    ("least patience", replace(job(), pipe=PipeOptions(stall_after=Seconds(0.1))), world(), {}, "--timeout=1", ""),
    ("lane", job(), world(), {"parallel_copy": True}, "--from0 --files-from=- --recursive", "--dirs --no-implied-dirs"),
    ("tidying a work tree", job(), world(), {"tidy": True}, "--delete-before", "--delete-delay"),
    ("a mirror with consent", mirror(), world(), {"tidy": True}, "--delete-delay", "--delete-before --link-dest"),
    ("a mirror without", mirror(), world(), {}, "--whole-file", "--delete-delay --delete-before"),
    ("a mirror's own folder", mirror(), world(), {},
     "--partial-dir=/backup/photos/.poolferry/work/.poolferry/partial --exclude=/.poolferry --temp-dir", ""),
    ("a mirror whose root is a user's", mirror(), replace(world(), source=replace(world().source, owner=1000)), {},
     "--exclude=/.poolferry", "--partial-dir --temp-dir"),
    ("a mirror whose root will be open", mirror(), replace(world(), source=replace(world().source, shared=True)), {},
     "", "--partial-dir --temp-dir"),
    ("a mirror whose root is open", mirror(), world(replace(EMPTY, root_shared=True)), {}, "", "--partial-dir --temp-dir"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "seen", "more", "there", "absent"), [row[1:] for row in FLAGS], ids=[row[0] for row in FLAGS]
)
def test_flags(told: Job, seen: RsyncSurvey, more: dict[str, Any], there: str, absent: str) -> None:
    argv = copy(told, seen, **more).argv
    names = {word.partition("=")[0] for word in argv}
    assert set(there.split()) <= set(argv) | names
    assert not set(absent.split()) & (set(argv) | names)


def test_only_a_tidied_mirror_destroys() -> None:
    assert copy(mirror(), world(), tidy=True).effect is Effect.DESTROYS
    assert copy(mirror(), world()).effect is Effect.WRITES
    assert copy(job(), world(), tidy=True).effect is Effect.WRITES  # the work tree is nobody's copy yet


@pytest.mark.parametrize(
    ("here", "there", "digest"),
    [
        (None, None, True),
        (NEW, NEW, True),
        (NEW, None, False),
        (NEW, program(3, 1, 3), False),
        (NEW, program(3, 2, 3, checksums="md5 md4"), False),
        (program(3, 1, 3), NEW, False),
    ],
)
def test_a_digest_is_told_only_where_it_is_xxh128(
    here: RsyncProgram | None, there: RsyncProgram | None, digest: bool
) -> None:
    assert both_support_xxh128(here, there) is digest
    argv = copy(job(target=THERE), world(here=here, there=there)).argv
    assert ("--checksum-choice=xxh128" in argv) is digest
    assert any("%C" in word for word in argv) is digest


VERSIONS = ((3, 0, 6), (3, 1, 1), (3, 1, 3), (3, 2, 3), (3, 5, 0))
LZ4, ZLIB, OLD_ZLIB = (
    ["--compress", "--compress-choice=lz4"],
    ["--compress", "--compress-choice=zlibx"],
    ["--new-compress"],
)
ZSTD = ["--compress", "--compress-choice=zstd", "--compress-level=1"]
# What each wish gives by the older side of a pair.
BY_OLDER: dict[str, dict[tuple[int, ...], list[str]]] = {
    "auto": {(3, 0, 6): [], (3, 1, 1): [], (3, 1, 3): OLD_ZLIB, (3, 2, 3): LZ4, (3, 5, 0): LZ4},
    "lz4": {(3, 0, 6): [], (3, 1, 1): [], (3, 1, 3): [], (3, 2, 3): LZ4, (3, 5, 0): LZ4},
    "zstd": {(3, 0, 6): [], (3, 1, 1): [], (3, 1, 3): [], (3, 2, 3): ZSTD, (3, 5, 0): ZSTD},
    "zlib": {(3, 0, 6): [], (3, 1, 1): [], (3, 1, 3): OLD_ZLIB, (3, 2, 3): ZLIB, (3, 5, 0): ZLIB},
    "none": {(3, 0, 6): [], (3, 1, 1): [], (3, 1, 3): [], (3, 2, 3): [], (3, 5, 0): []},
}


@pytest.mark.parametrize("preference", BY_OLDER)
@pytest.mark.parametrize("one", VERSIONS)
@pytest.mark.parametrize("other", VERSIONS)
def test_compression_of_every_pair(preference: str, one: tuple[int, ...], other: tuple[int, ...]) -> None:
    assert choose_compression(preference, program(*one), program(*other)) == BY_OLDER[preference][min(one, other)]


@pytest.mark.parametrize(
    ("preference", "there", "flags"),
    [
        ("auto", "zstd zlibx zlib", ZSTD),
        ("auto", "zlibx zlib", ZLIB),
        ("auto", "none", []),
        ("lz4", "zstd zlibx", []),
        ("zstd", "zlibx", []),
    ],
)
def test_compression_that_only_one_side_was_built_with(preference: str, there: str, flags: list[str]) -> None:
    assert choose_compression(preference, NEW, program(3, 2, 7, compressions=there)) == flags


def test_the_look_changes_nothing_and_tells_all() -> None:
    command = dry_run_command(job(excludes=("*.tmp",)), point().tree, there=None, coarse=False)
    assert command.effect is Effect.READS
    assert command.argv == (
        "rsync", "--dry-run", "--archive", "--hard-links", "--acls", "--xattrs", "--xattrs", "--numeric-ids", "--one-file-system",
        "--filter=-p_.~poolferry-partial~", "--filter=-p_.poolferry-restoring.json",
        "--exclude=*.tmp", "--delete", "--modify-window=-1", "--no-human-readable", "--stats",
        "--debug=FILTER", "--out-format=pf:%i|%l|%n", "--", "/srv/photos/", "/backup/photos/points/2026-03-03T050607Z/",
    )  # fmt: skip


def test_the_look_at_a_far_source_sees_names_of_ours_but_nothing_in_them() -> None:
    far = replace(job(), source=Location(path="/srv/photos", host=Host(name="box")))
    argv = dry_run_command(far, point().tree, there=None, coarse=False).argv
    assert "--debug=FILTER" not in argv
    rules = [word for word in argv if word.startswith("--filter=")]
    assert rules == [
        "--filter=-rp_.~poolferry-partial~", "--filter=-rp_.poolferry-restoring.json",
        "--filter=-p_.~poolferry-partial~/*", "--filter=-p_.poolferry-restoring.json/*",
    ]  # fmt: skip


def test_nobodys_pattern_lets_a_mirror_touch_our_own_folder() -> None:
    argv = dry_run_command(mirror(excludes=("+ /.*",)), ROOT, there=None, coarse=False).argv
    assert argv.index("--exclude=/.poolferry") < argv.index("--exclude=+ /.*")


def test_the_question_for_abilities_suits_old_programs_too() -> None:
    assert rsync_version_command(HOST) == Command(
        argv=("rsync", "--version", "--version"), effect=Effect.READS, host=HOST
    )


def test_going_on_with_one_file() -> None:
    argv = append_command(job(), b"a/[1]\xff", ROOT, b"a/p/[1]\xff", here=None, there=None).argv
    assert "--append-verify" in argv
    assert argv[-2:] == ("/srv/photos/a/[1]\udcff", "/backup/photos/a/p/[1]\udcff")
    far = append_command(job(source=SOURCE_THERE), b"a/[1]", ROOT, b"p", here=NEW, there=NEW).argv
    assert far[-2:] == ("root@backup:/srv/photos/a/\\[1\\]", "/backup/photos/p")


def test_a_restore_removes_what_came_later_but_not_its_own_marks() -> None:
    tree, to = point().tree, Location(path="/srv/back")
    names, copied = restore_command(tree, to, job(excludes=("x",)), folder=True).stages
    assert names.argv[:2] == ("find", tree.path + "/.")
    assert copied.argv[3:6] == ("in-folder.sh", "/srv/back", "rsync")
    argv = copied.argv
    assert {"--delete-delay", "--filter=-p_.poolferry-restoring.json", "--whole-file", "--files-from=-"} <= set(argv)
    assert "--exclude=/.poolferry" not in argv
    assert "--exclude=x" not in argv
    assert argv[-2:] == (tree.path + "/", "./")
    assert "--exclude=/.poolferry" in restore_command(ROOT, to, mirror(), folder=True).stages[-1].argv
    left = restore_command(tree, to, job(), folder=True, left_out=(b"sub", b"in/[a] b")).stages[-1].argv
    assert {"--exclude=/sub", r"--exclude=/in/\[a\] b"} <= set(left), (
        "what is mounted there is neither written nor removed"
    )
    far = Location(path=THERE.path, host=HOST)
    (one,) = restore_command(far, Location(path="/srv/.~poolferry-partial~/back"), job(), folder=False).stages
    assert not {"--delete-delay", "--whole-file"} & set(one.argv)
    assert one.argv[-2:] == ("root@backup:/backup/photos", "./back")


def test_a_restore_to_a_host_begins_in_its_folder() -> None:
    to = Location(path="/srv/a b", host=HOST)
    names, copied = restore_command(point().tree, to, job(), folder=True).stages
    assert names.host is None
    assert copied.host is None
    assert copied.argv[-1] == "root@backup:./"
    (path,) = (word for word in copied.argv if word.startswith("--rsync-path="))
    assert "in-folder.sh" in path
    assert path.endswith(" '/srv/a b' rsync")
    assert "\n" not in path


def test_digests_there() -> None:
    command = digests_command(THERE, "/notes/empty", "xxh128", job(target=THERE))
    assert command.effect is Effect.READS
    assert {"--dry-run", "--checksum-choice=xxh128", "--from0", "--files-from=-"} <= set(command.argv)
    assert command.argv[-2:] == ("root@backup:/backup/photos/", "/notes/empty/")
    assert digests_command(THERE, "/e", "sha256", job()).host == HOST
    with pytest.raises(ValueError, match="blake3 cannot be made on root@backup"):
        digests_command(THERE, "/e", "blake3", job())


def test_another_user_port_and_address() -> None:
    six = Host(name="fe80::1", port=2222)
    told = replace(job(target=Location(path="/b", host=six)), pipe=PipeOptions(ssh_options=("-i", "/k e y")))
    argv = copy(told, FAR).argv
    assert argv[argv.index("-e") + 1].split() == [
        "ssh", *FIRM.split(), "-i", "'/k", "e", "y'", *SSH.split()[5:], "-p", "2222",
    ]  # fmt: skip
    assert argv[-1] == "[fe80::1]:/b/.poolferry/work/"
    assert copy(job(source=Location(path="/")), world()).argv[-2] == "/"


NAMES = (
    "plain",
    "two words",
    "new\nline",
    "[1]",
    "1*?",
    'qu"ote',
    "it's",
    "back\\slash",
    "back\\slash/[1]",
    "both\\[1]",
    "$(touch PWNED)",
    "-r",
    "üñ",
    "a:b",
)


def fake_shell(folder: Path) -> Path:
    """A remote shell that runs what rsync sends by a login shell, as sshd does."""
    script = folder / "ssh"
    script.write_text(
        f'#!/bin/sh\nwhile [ "$1" != host ]; do shift; done; shift\ncd "{folder}/home" || exit\nexec sh -c "$*"\n'
    )
    script.chmod(0o755)
    (folder / "home").mkdir()
    return script


@pytest.mark.parametrize("name", NAMES)
def test_far_names_arrive_whole(tmp_path: Path, name: str) -> None:
    """Both ways through a real rsync and a real shell; a look-alike lies beside that a wildcard would take."""
    fake_shell(tmp_path)
    there, back = tmp_path / "far" / name, tmp_path / "back"
    for place in (there, tmp_path / "far/1", tmp_path / "far/1xx", tmp_path / "here"):
        place.mkdir(parents=True)
        (place / "file").write_text(str(place))
    (there / ".poolferry").mkdir()
    far = Location(path=str(there), host=Host(name="host"))
    here = Location(path=str(tmp_path / "here"))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    copied = copy_command(job(source=far), Location(path=str(back)), FAR, base=None)
    subprocess.run(copied.argv, env=environment, check=True, capture_output=True)
    assert (back / "file").read_text() == str(there)
    copied = copy_command(job(source=here, target=far), far / ".poolferry/work", FAR, base=None)
    subprocess.run(copied.argv, env=environment, check=True, capture_output=True)
    assert (there / ".poolferry/work/file").read_text() == str(tmp_path / "here")
    assert (there / ".poolferry/lock").exists()  # the lock lies where the quoted path says
    assert os.listdir(tmp_path / "home") == []


def test_one_far_file_with_any_name_is_gone_on_with(tmp_path: Path) -> None:
    fake_shell(tmp_path)
    far = tmp_path / "far"
    far.mkdir()
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    told = job(source=Location(path=str(far), host=Host(name="host")), acls=False, xattrs=False)
    for name in (b"[1]*", b"two words", b"it's \xff"):
        with open(os.fsencode(far) + b"/" + name, "wb") as file:
            file.write(b"0123456789")
        (tmp_path / "half").write_bytes(b"01234")
        command = append_command(told, name, Location(path=str(tmp_path)), b"half", here=NEW, there=NEW)
        subprocess.run([os.fsencode(word) for word in command.argv], env=environment, check=True, capture_output=True)
        assert (tmp_path / "half").read_bytes() == b"0123456789"


def test_only_the_named_files_are_copied_again(tmp_path: Path) -> None:
    source, target, rules = tmp_path / "s", tmp_path / "t", tmp_path / "rules"
    wanted = (b"a/[1]", b"a/b*\\c", b"new\nline", b"gone", b"#x", b"- y", b"a/back\\slash")
    for path in (*wanted, b"a/1", b"a/bxc", b"other", b"a/other"):
        for root in (source, target):
            place = os.fsencode(root) + b"/" + path
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(b"good" if root is source else b"evil")
            os.utime(place, (1, 1))
    (source / "gone").unlink()
    rules.write_bytes(path_filter(wanted))
    command = recopy_command(job(source=Location(path=str(source))), Location(path=str(target)), world(), str(rules))
    done = subprocess.run(command.argv, capture_output=True, check=True)
    places = [os.path.join(folder, name) for folder, _, names in os.walk(os.fsencode(target)) for name in names]
    found = {
        os.path.relpath(place, os.fsencode(target))
        for place in places
        if Path(os.fsdecode(place)).read_bytes() == b"good"
    }
    assert found == set(wanted) - {b"gone"}, done.stdout


@settings(max_examples=30)
@given(st.lists(st.text(st.characters(exclude_characters="\0/", codec="utf-8"), min_size=1), min_size=1, max_size=4))
def test_rules_name_each_folder_once_and_before_what_lies_in_it(parts: list[str]) -> None:
    path = "/".join(parts).encode()
    rules = path_filter((path, path)).split(b"\0")[:-1]
    assert len(rules) == len(parts)
    assert all(rule.endswith(b"/") for rule in rules[:-1])
    assert all(rule.startswith(b"/") for rule in rules)


@pytest.mark.parametrize(
    ("version", "resumes"), [((3, 2, 7), False), ((3, 4, 0), False), ((3, 4, 1), True), ((3, 5, 0), True)]
)
def test_a_mirror_goes_on_from_our_own_folder_only_where_rsync_can(version: tuple[int, ...], *, resumes: bool) -> None:
    seen = world(there=replace(program(), version=version))
    told = copy_command(mirror(target=THERE), THERE, seen, base=None).argv
    assert any(word.startswith(f"--partial-dir={THERE.path}/") for word in told) == resumes
    assert any(word.startswith(f"--temp-dir={THERE.path}/") for word in told)


def test_names_that_an_older_rsync_does_not_know_again_are_asked_of_a_trusted_sender() -> None:
    assert "--trust-sender" in digests_command(THERE, "/e", "xxh128", job(target=THERE), odd_names=True).argv
    assert "--trust-sender" not in digests_command(THERE, "/e", "xxh128", job(target=THERE)).argv
    assert (
        "--trust-sender"
        not in digests_command(THERE, "/e", "xxh128", job(target=THERE), odd_names=True, whole=True).argv
    )

"""Command lines: which flags for which dataset and place, that names arrive whole, and what no line may ever hold."""

import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.command_line import brief_line, ssh_argv
from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Effect, Pipeline
from orchestrator.domain.units import Bytes
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost, batch_arguments, send_arguments
from orchestrator.engines.zfs.model import DatasetType, SendFlags
from orchestrator.process.scripts import script
from tests.engines.zfs.script_runner import run
from tests.engines.zfs.sides import COPY, FLAGS, HOST, SOURCE, side

FAR = Location(path="vault/copies/photos", host=HOST)
HERE = CommandHost()
NAMES = st.text("abzAZ09-_.: ", min_size=1, max_size=12)


TELL = 'printf "%s|" "$@"'


@given(NAMES, NAMES)
@settings(max_examples=25, deadline=None)
def test_names_reach_the_far_zfs_whole(one: str, other: str) -> None:
    name = f"tank/{one}@{other}"
    command = commands.send_command(("send", "-P", name), side(FAR, mbuffer=False), PipeOptions())
    line = ssh_argv(command)[-1].replace('zfs "$@"', 'printf "%s|" "$@"')
    told = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
    assert told == f"send|-P|{name}|"


@pytest.mark.parametrize("host", [None, HOST])
@pytest.mark.parametrize("sudo", [False, True])
def test_one_command_here_and_there(host: None, sudo: bool, tmp_path: Path) -> None:
    command = commands.rename_command("vault/a b", "vault/-c", CommandHost(host=host, sudo=sudo))
    told = run(command, tmp_path, {"zfs": TELL, "sudo": 'printf "sudo "; shift; exec "$@"'})
    assert told.stdout == ("sudo " if sudo else "") + "rename|-u|vault/a b|vault/-c|"
    if host is None:
        assert command.argv == ((("sudo", "-n") if sudo else ()) + ("zfs", "rename", "-u", "vault/a b", "vault/-c"))


def test_sends_word_for_word() -> None:
    assert commands.full_send_arguments("t@a", FLAGS, properties=True) == ("send", "-PLcep", "t@a")
    raw = SendFlags(raw=True, large=False, compressed=False, embedded=False)
    assert commands.full_send_arguments("t@a", raw, properties=False) == ("send", "-Pw", "t@a")
    plain = SendFlags(large=False, compressed=False, embedded=False)
    assert commands.full_send_arguments("t@a", plain, properties=False) == ("send", "-P", "t@a")
    words = commands.incremental_send_arguments("t@a", "t@b", FLAGS, between=True, properties=True)
    assert words == ("send", "-PLcep", "-I", "t@a", "t@b")
    words = commands.incremental_send_arguments("t#a", "t@b", FLAGS, between=False, properties=False)
    assert words == ("send", "-PLce", "-i", "t#a", "t@b")
    assert commands.resumed_send_arguments("1-2-3-4") == ("send", "-P", "-t", "1-2-3-4")


def test_receives_word_for_word() -> None:
    first = commands.receive_arguments("v/x", DatasetType.FILESYSTEM, first=True, properties=True, flags=FLAGS)
    assert " ".join(first) == (
        "receive -s -u -x poolferry:receive -o readonly=on -o quota=none -o refquota=none -o reservation=none -o refreservation=none "
        "-o canmount=noauto -o poolferry:flags=Lce -x mountpoint -x sharenfs -x sharesmb v/x"
    )
    volume = commands.receive_arguments("v/x", DatasetType.VOLUME, first=True, properties=True, flags=FLAGS)
    assert " ".join(volume) == (
        "receive -s -u -x poolferry:receive -o readonly=on -o reservation=none -o refreservation=none -o poolferry:flags=Lce v/x"
    )
    bare = commands.receive_arguments("v/x", DatasetType.FILESYSTEM, first=False, properties=False, flags=FLAGS)
    assert bare == ("receive", "-s", "-u", "-x", "poolferry:receive", "v/x")
    here: dict[str, Any] = {"first": False, "properties": False, "flags": FLAGS, "local": True}
    bare = commands.receive_arguments("v/x", DatasetType.FILESYSTEM, **here)
    assert bare == ("receive", "-s", "-u", "-s", "-u", "v/x"), "without an option it is ours by these"
    forced = commands.receive_arguments("v/x", DatasetType.FILESYSTEM, onto_placeholder=True, **here)
    assert forced == ("receive", "-s", "-u", "-F", "-x", "poolferry:receive", "v/x")
    clone = commands.receive_arguments(
        "v/x", DatasetType.VOLUME, first=True, properties=False, flags=None, origin="v/o@a", onto_placeholder=True
    )
    assert " ".join(clone) == (
        "receive -s -u -F -x poolferry:receive -o readonly=on -o reservation=none -o refreservation=none -o origin=v/o@a v/x"
    )
    later = commands.receive_arguments("v/x", DatasetType.FILESYSTEM, first=False, properties=True, flags=FLAGS)
    assert " ".join(later) == (
        "receive -s -u -x poolferry:receive -x mountpoint -x sharenfs -x sharesmb -x quota -x refquota -x reservation -x refreservation v/x"
    )


@pytest.mark.parametrize("kind", DatasetType)
def test_what_is_protected_is_excluded_once_and_only_where_it_fits(kind: DatasetType) -> None:
    protect = ("compression", "quota", "readonly", "recordsize", "user:mark", "compression")
    words = commands.receive_arguments("v/x", kind, first=True, properties=True, flags=None, protect=protect)
    given = [after for word, after in pairwise(words) if word == "-x"]
    fits_all = ["compression", "user:mark", "poolferry:receive"]
    assert sorted(given) == sorted(
        [*fits_all, "mountpoint", "sharenfs", "sharesmb", "recordsize"]
        if kind is DatasetType.FILESYSTEM else fits_all
    )  # fmt: skip
    later = commands.receive_arguments("v/x", kind, first=False, properties=True, flags=None, protect=protect)
    assert later.count("readonly") == 1  # nothing sets it then, so the stream may not change it
    assert later.count("reservation") == 1


@given(
    raw=st.booleans(), large=st.booleans(), compressed=st.booleans(), embedded=st.booleans(), between=st.booleans(),
    properties=st.booleans(), first=st.booleans(), placeholder=st.booleans(), kind=st.sampled_from(DatasetType),
)  # fmt: skip
def test_no_send_is_replicating_and_none_is_forced_but_onto_a_placeholder(
    *, raw: bool, large: bool, compressed: bool, embedded: bool, between: bool, properties: bool, first: bool,
    placeholder: bool, kind: DatasetType,
) -> None:  # fmt: skip
    flags = SendFlags(raw=raw, large=large, compressed=compressed, embedded=embedded)
    sending = commands.incremental_send_arguments("t@a", "t@b", flags, between=between, properties=properties)
    assert not any(word.startswith("-") and "R" in word for word in sending)
    received = commands.receive_arguments(
        "v/x", kind, first=first, properties=properties, flags=flags, onto_placeholder=placeholder
    )
    assert ("-F" in received) is placeholder
    assert {"-s", "-u"} <= set(received)
    effect = commands.receive_command(received, side(COPY), PipeOptions()).effect
    assert effect is (Effect.DESTROYS if placeholder else Effect.WRITES)


def test_effects_are_honest() -> None:
    assert commands.rollback_command("v/x@a", over_snapshots=True, where=HERE).effect is Effect.DESTROYS
    assert commands.rollback_command("v/x@a", over_snapshots=True, where=HERE).argv == (
        "zfs",
        "rollback",
        "-r",
        "v/x@a",
    )
    assert commands.rollback_command("v/x@a", over_snapshots=False, where=HERE).argv == ("zfs", "rollback", "v/x@a")
    looking = (
        commands.survey_command(SOURCE, target=True, recursive=True, sudo=True, above=True, created=True),
        commands.receiving_command(HOST), commands.newest_command(("a",), None), commands.points_command(COPY),
        commands.send_sizes_command((), HERE), commands.rights_command(COPY), commands.buffer_command(PipeOptions(), streams=1),
        commands.send_command(("send", "-P", "t@a"), side(FAR), PipeOptions()), commands.sudo_command(COPY),
    )  # fmt: skip
    assert {command.effect for command in looking} == {Effect.READS}
    writing = (
        commands.abort_command("v/x", HERE), commands.end_receive_command("v/x", 1, HERE),
        commands.rename_command("v/x", "v/y", HERE), commands.placeholder_command("v/x", HERE),
        commands.no_placeholder_command("v/x", HERE), *commands.bookmark_commands((("t", "a", "b"),), side(SOURCE)),
        *commands.destroy_bookmark_commands(("t#a",), side(SOURCE)), *commands.hold_commands("x", ("t@a",), side(SOURCE)),
        *commands.release_commands("x", ("t@a",), side(SOURCE)),
    )  # fmt: skip
    assert {command.effect for command in writing} == {Effect.WRITES}


def test_only_bookmarks_are_dropped(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not all are bookmarks"):
        list(commands.destroy_bookmark_commands(("t#a", "t@a"), side(SOURCE)))
    command = commands.script_command("destroy-bookmarks.sh", "t@a", effect=Effect.WRITES, where=HERE)
    told = run(command, tmp_path, {"zfs": "echo called >&2"})
    assert (told.returncode, told.stderr) == (1, "")


def test_the_rate_is_shared_and_a_buffer_has_room() -> None:
    pipe = PipeOptions(rate_limit=Bytes(10 << 20), buffer=Bytes(64 << 20))
    assert commands.buffer_command(pipe, streams=3).argv == (
        "mbuffer", "-q", "-s", "128k", "-m", "65536k", "-r", "3495253",
    )  # fmt: skip
    assert commands.buffer_command(PipeOptions(buffer=Bytes(1)), streams=1).argv[-2:] == ("-m", "2048k")
    small = commands.buffer_command(PipeOptions(buffer=Bytes(1), rate_limit=Bytes(64 << 10)), streams=1)
    done = subprocess.run(small.argv, input=b"x" * 100_000, capture_output=True, timeout=60)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 100_000, b"")


@given(st.lists(st.tuples(NAMES, NAMES), max_size=60), st.integers(20, 200))
def test_batches_keep_groups_whole_and_lines_short(groups: list[tuple[str, str]], longest: int) -> None:
    cut = list(batch_arguments(groups, longest))
    assert [word for batch in cut for word in batch] == [word for group in groups for word in group]
    assert all(batch and len(batch) % 2 == 0 for batch in cut)
    for batch in cut:
        assert len(batch) == 2 or sum(len(word) + 1 for word in batch) <= longest


def test_thousands_of_cursors_fit_a_few_far_lines() -> None:
    marks = tuple((f"tank/data/set{n:05d}", "autosnap_2026-01-01_00:00:00_daily", "p" * 43) for n in range(3000))
    far = side(Location(path="tank/data", host=HOST))
    lines = [ssh_argv(command)[-1] for command in commands.bookmark_commands(marks, far)]
    assert 1 < len(lines) < 5
    assert all(len(line) < 110_000 for line in lines)


def test_what_follows_the_word_send_is_found_again() -> None:
    words = ("send", "-PLcep", "-i", "t@a", "t@b")
    for where in (side(COPY), side(FAR), side(FAR, sudo=True), side(FAR, mbuffer=False), side(COPY, sudo=True)):
        assert send_arguments(commands.send_command(words, where, PipeOptions())) == words[1:]
    assert send_arguments(commands.abort_command("x", HERE)) is None


def test_a_send_with_sudo_is_known_wherever_it_runs() -> None:
    words = ("send", "-P", "tank/sudo@a")
    sides = [
        (side(at, sudo=sudo, mbuffer=mbuffer), sudo)
        for at in (COPY, FAR)
        for sudo in (True, False)
        for mbuffer in (True, False)
    ]
    for where, sudo in sides:
        assert commands.runs_with_sudo(commands.send_command(words, where, PipeOptions())) is sudo


def test_a_plan_shows_scripts_by_their_names_and_no_text() -> None:
    marks = (("tank/a b", "s", "m"),)
    shown = {
        "bookmarks.sh tank 'tank/a b' s m": commands.bookmark_commands(marks, side(SOURCE)),
        "bookmarks-one-by-one.sh 'tank/a b' s m": commands.bookmark_commands(marks, side(SOURCE, programs=False)),
        "destroy-bookmarks.sh 't#m'": commands.destroy_bookmark_commands(("t#m",), side(SOURCE)),
        "root@backup: hold.sh tag t@a": commands.hold_commands("tag", ("t@a",), side(FAR)),
        "root@backup: zfs.sh send -P t@a": [commands.send_command(("send", "-P", "t@a"), side(FAR, mbuffer=False), PipeOptions())],
    }  # fmt: skip
    for line, made in shown.items():
        (command,) = made
        assert brief_line(Pipeline(stages=(command,))) == line


@pytest.mark.parametrize("host", [None, HOST])
def test_the_channel_program_reaches_zfs_as_it_is(host: Host | None, tmp_path: Path) -> None:
    (command,) = commands.bookmark_commands((("tank/a b", "s", "m"),), side(Location(path="tank", host=host)))
    program, words = tmp_path / "program", tmp_path / "words"
    assert run(command, tmp_path, {"zfs": f'cat > {program}; printf "%s|" "$@" > {words}'}).returncode == 0
    assert program.read_text() == script("engines/zfs", "bookmarks.lua")
    assert words.read_text() == "program|-m|67108864|-t|50000000|tank|-|tank/a b|s|m|"

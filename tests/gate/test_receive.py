"""Requests of a key that only adds to copies: what a push sends passes, and comes out harmless; nothing else passes."""

import itertools
import re
import shlex

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.gate import LACKS, Gate, GateRefusal
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.engines.zfs.errors.explain import explain
from orchestrator.engines.zfs.model import DatasetType
from orchestrator.gate.admit import admit
from orchestrator.gate.receive import Reception, marks_command, newest_name, parse_marks, used_command
from orchestrator.gate.request import parse_request
from orchestrator.gate.stream_head import StreamHead
from orchestrator.process.pipeline import pipeline_failure
from orchestrator.process.scripted import scripted_result
from tests.gate.mutations import mutated, sent
from tests.gate.zfs_requests import pushed, receive_commands, sent_back

ROOT = "vault/in/laptop"
GATE = Gate(receives=ROOT)
COPIES = (f"{ROOT}/photos", f"{ROOT}/a b/c_d:e.f-g")
HEADS = tuple(StreamHead(kind=kind, clone=clone) for kind in DatasetType for clone in (False, True))
FILESYSTEM = HEADS[0]


def admitted(line: str) -> Command | Reception:
    right, answer = admit(parse_request(line), GATE)
    assert right == "receives"
    assert isinstance(answer, Command | Reception)
    return answer


@pytest.mark.parametrize("copy", COPIES)
def test_each_request_of_a_push_is_answered_by_what_it_asks_for(copy: str) -> None:
    for asked in pushed(copy):
        answer = admitted(ssh_argv(asked)[-1])
        assert isinstance(answer, Command)
        assert (answer.host, answer.effect) == (None, asked.effect)
        expected = asked.argv[4:]
        if asked.argv[3] == "survey.sh":
            expected = ("plain", *expected[1:])
        if asked.argv[3] == "find-datasets.sh":
            expected = (*expected, ROOT)
        if asked.argv[3] == "receivers.sh":
            expected = (ROOT,)
        assert answer.argv[-len(expected) :] == expected


def test_its_own_dataset_is_made_by_nobody_but_its_owner() -> None:
    """A run asks for that where it did not find it, as after a rename."""
    (asked, *_) = [each for each in pushed(ROOT) if "create" in each.argv]
    made = ssh_argv(asked)[-1].replace(f"{ROOT}/b", ROOT)
    with pytest.raises(GateRefusal) as refused:
        admitted(made)
    assert refused.value.why == f"{ROOT}, below which it receives, is not there"
    failed = scripted_result(
        exits=(126,), words=f"poolferry gate laptop: refused: {refused.value.why} (poolferry 0.1.0)"
    )
    error = explain(pipeline_failure(Pipeline(stages=(asked,)), failed))
    assert error.why.startswith("the dataset into which the gate of our key receives is not there (")
    assert error.hint.startswith(
        "where it was renamed there, give it its name back, or name it so in the gate's file there"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("send", "-w", "vault/other@a"), ("send", "-w", "-I", f"{ROOT}/x@a", "vault/other@b"), ("send", "-w", f"{ROOT}/x"),
        ("send", "-w", "-I", "vault/other@a", f"{ROOT}/x@b"), ("send", "-R", f"{ROOT}/x@a"), ("send", "-w", "-i", "a", f"{ROOT}/x@a"),
        ("send", "-wR", f"{ROOT}/x@a"), ("destroy", f"{ROOT}/x@a"), ("send", "-w"), (),
    ],
)  # fmt: skip
def test_nothing_else_is_read(words: tuple[str, ...]) -> None:
    with pytest.raises(GateRefusal):
        admitted(sent("read-copy.sh", *words))


@pytest.mark.parametrize(
    ("gate", "asked", "says"),
    [
        (GATE, sent_back(f"{ROOT}/x"), f'sends = "{ROOT}"'),
        (Gate(sends="tank"), receive_commands("tank/x")[0], 'receives = "tank"'),
    ],
)
def test_a_refusal_names_the_right_that_would_let_it_through(gate: Gate, asked: Command, says: str) -> None:
    """Seen: to fetch back through a key that only adds was "no question that this version knows", and to upgrade the hint."""
    with pytest.raises(GateRefusal, match=re.escape(f"{LACKS}{says} would let it through")):
        admit(parse_request(ssh_argv(asked)[-1]), gate)


@pytest.mark.parametrize("copy", COPIES)
def test_each_receive_has_what_was_asked_for_and_mounts_and_shares_nothing(copy: str) -> None:
    for asked in receive_commands(copy):
        answer = admitted(ssh_argv(asked)[-1])
        assert isinstance(answer, Reception)
        head = StreamHead(kind=DatasetType.FILESYSTEM, clone=answer.origin is not None)
        words = answer.command(head).argv
        assert words[:2] == ("zfs", "receive")
        assert (answer.memory, answer.patience) == (
            (64 << 20, 600.0) if asked.argv[3] == "receive.sh" else (1 << 20, None)
        )
        options = set(itertools.pairwise(words))
        wanted = {
            (flag, word) for flag, word in zip(asked.argv, asked.argv[1:], strict=False) if flag in ("-o", "-x")
        } - {("-x", "readonly"), ("-x", "reservation"), ("-x", "refreservation")}
        assert wanted <= options | {("-x", "readonly")}
        for safe in ("readonly=on", "canmount=noauto", "reservation=none", "refreservation=none"):
            assert ("-o", safe) in options
        for name in ("mountpoint", "sharenfs", "sharesmb", "dedup"):
            assert ("-x", name) in options
        named = [word.partition("=")[0] for flag, word in itertools.pairwise(words) if flag in ("-o", "-x")]
        assert len(set(named)) == len(named)  # zfs takes none twice
        assert words[-1] in (copy, *(asked.argv[-1:]))
        assert "-F" not in words


def test_a_volume_gets_nothing_that_only_filesystems_have() -> None:
    answer = admitted(sent("zfs.sh", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/v"))
    assert isinstance(answer, Reception)
    words = " ".join(answer.command(StreamHead(kind=DatasetType.VOLUME, clone=False)).argv)
    assert not re.search("canmount|mountpoint|share|quota", words), words
    assert "-o readonly=on" in words


def test_what_is_used_is_asked_of_the_gates_dataset() -> None:
    assert used_command(ROOT).argv == ("zfs", "get", "-Hp", "-o", "value", "used", ROOT)


def test_a_clone_starts_from_a_snapshot_that_is_named() -> None:
    answer = admitted(sent("zfs.sh", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/v"))
    assert isinstance(answer, Reception)
    with pytest.raises(GateRefusal, match="a clone without"):
        answer.command(StreamHead(kind=DatasetType.FILESYSTEM, clone=True))


def test_memory_and_patience_are_bounded() -> None:
    words = ("receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/v")
    answer = admitted(sent("receive.sh", "999999999k", "1", *words))
    assert isinstance(answer, Reception)
    assert answer.buffer == ("65536k", "30")
    for memory, patience in (
        ("1", "1"),
        ("-1k", "1"),
        ("1k", "-1"),
        ("1k", "x"),
        ("k", "1"),
        ("1000000000000k", "1"),
        ("\u0661k", "1"),
    ):
        with pytest.raises(GateRefusal):
            admitted(sent("receive.sh", memory, patience, *words))


BAD_DATASETS = (
    ROOT, "vault", "vault/in", "vault/in/laptop2", "vault/in/laptop2/x", "other/x", f"{ROOT}/", f"{ROOT}//x", f"{ROOT}/..", f"{ROOT}/.",
    f"{ROOT}/../other", f"{ROOT}/x/../../other", f"{ROOT}/%recv", f"{ROOT}/x%y", f"{ROOT}/x@a", f"{ROOT}/x#a", f"/{ROOT}/x", f"-{ROOT}/x",
    f"{ROOT}/x,y", f"{ROOT}/x\n", f"{ROOT}/x\0", f"{ROOT}/{'x' * 250}", f"{ROOT}/\udcff", f"{ROOT}/é", "", "-", "-A", f"{ROOT}/x=y",
)  # fmt: skip


@pytest.mark.parametrize("dataset", BAD_DATASETS)
def test_another_dataset_is_refused(dataset: str) -> None:
    receive = ("receive", "-s", "-u", "-x", "poolferry:receive")
    create = ("create", "-u", "-o", "canmount=off", "-o", "readonly=on", "-o", "poolferry:placeholder=on")
    for words in (
        ("zfs.sh", *receive, dataset), ("receive.sh", "2048k", "60", *receive, dataset), ("zfs.sh", *create, dataset),
        ("abort-receive.sh", dataset), ("end-receive.sh", "4711", dataset, "plain"),
        ("zfs.sh", *receive, "-o", f"origin={dataset}@a", f"{ROOT}/x"),
    ):  # fmt: skip
        with pytest.raises(GateRefusal):
            admitted(sent(*words))
    if (
        not dataset.startswith(ROOT)
        or not re.fullmatch(r"[a-z2/]+(@a)?", dataset)
        or dataset.endswith("/")
        or "laptop2" in dataset
    ):
        for script in ("confirm.sh", "newest.sh", "points.sh"):
            with pytest.raises(GateRefusal):
                admitted(sent(script, *([dataset.replace("@a", "@%")] if "@" in dataset else [dataset])))


OPTIONS = (
    "-F", "-A", "-d", "-e", "-n", "-M", "-h", "-v", "-o", "-x", "-o mountpoint=/etc", "-o sharenfs=on", "-o canmount=on", "-o readonly=off",
    "-o setuid=on", "-o exec=on", "-o keylocation=file:///etc/shadow", "-o quota=1", "-o encryption=on", "-o poolferry:flags=x",
    "-o poolferry:placeholder=on", "-o com.sun:auto-snapshot=true", "-o origin=vault/in/other@a", f"-o origin={ROOT}@a", "-o origin=x",
    "-o readonly", "-o =on", "-x MOUNTPOINT", "-x a=b", "-x ''", "-x $(id)", "readonly=on", "-o readonly=on -o readonly=on",
    f"-o origin={ROOT}/a@a -o origin={ROOT}/a@b", "-o canmount=noauto\\n", "-o quota=none,mountpoint=/",
)  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
def test_another_option_is_refused(option: str) -> None:
    for mark in (("-x", "poolferry:receive"), ()):
        with pytest.raises(GateRefusal):
            admitted(sent("zfs.sh", "receive", "-s", "-u", *mark, *shlex.split(option), f"{ROOT}/x"))


HOSTILE = (
    "destroy {0}/x@a", "destroy -r {0}/x", "destroy -n {0}/x@a", "rollback {0}/x@a", "rollback -r {0}/x@a", "rename {0}/x {0}/y",
    "set readonly=off {0}/x", "set poolferry:flags=L {0}/x", "inherit readonly {0}/x", "inherit poolferry:placeholder {0}/x",
    "promote {0}/x", "mount {0}/x", "clone {0}/x@a {0}/y", "snapshot {0}/x@b", "hold a {0}/x@a", "release a {0}/x@a",
    "allow everyone destroy {0}", "send {0}/x@a", "send -P {0}/x@a", "receive {0}/x", "receive -s {0}/x", "receive -s -u {0}/x",
    "receive -u -s -x poolferry:receive {0}/x", "receive -s -u -x other {0}/x", "receive -s -u -x poolferry:receive", "receive -A {0}/x",
    "create {0}/x", "create -p {0}/x", "create -u -o canmount=on {0}/x", "create -V 1T {0}/x", "program vault -", "list", "get all", "",
    "version -j", "diff {0}/x@a", "load-key {0}/x", "unload-key {0}/x", "change-key {0}/x", "share -a", "upgrade {0}/x", "bookmark {0}/x@a {0}/x#b",
    "create -u -o canmount=off -o readonly=on -o poolferry:placeholder=on -o mountpoint=/etc {0}/x",
)  # fmt: skip


@pytest.mark.parametrize("words", HOSTILE)
def test_nothing_else_of_zfs_passes(words: str) -> None:
    with pytest.raises(GateRefusal):
        admitted(sent("zfs.sh", *shlex.split(words.format(ROOT))))
    with pytest.raises(GateRefusal):
        admitted(shlex.join(("zfs", *shlex.split(words.format(ROOT)))))


@pytest.mark.parametrize(
    "line",
    [
        "true", "id", "bash", "zpool destroy vault", "rsync --version", "find /", "sync -f /", "sh -c x look-at-tools.sh",
        "sh -c x send.sh 2048k 60 send -P vault/in/laptop/x@a", "sh -c x bookmarks.sh vault", "sh -c x destroy-bookmarks.sh vault/in/laptop/x#a",
        "sh -c x release.sh a vault/in/laptop/x@a", "sh -c x hold.sh a vault/in/laptop/x@a", "sh -c x store-kit.sh vault/in/laptop/x photos",
        "unshare --mount --propagation slave sh -c x store-kit.sh vault/in/laptop/x photos", "sh -c x listen.sh a b 61000 60 receive",
        "sh -c x receivers.sh vault", "sh -c x end-receive.sh 1 vault/in/laptop/x", "sh -c x end-receive.sh -1 vault/in/laptop/x plain",
        "sh -c x end-receive.sh 0 vault/in/laptop/x plain", "sh -c x abort-receive.sh", "sh -c x confirm.sh", "sh -c x holds.sh vault",
        "sh -c x space.sh vault vault vault/in/laptop/x", "sh -c x space.sh other vault/in/laptop vault/in/laptop/x",
        "sh -c x rights.sh other vault/in/laptop", "sh -c x survey.sh plain vault", "sh -c x look-for-kit.sh vault vault/in/laptop vault",
        "sh -c x drop-drill.sh vault/in/laptop/x mark", "sh -c x run-check.sh / - id",
    ],
)  # fmt: skip
def test_no_other_request_passes(line: str) -> None:
    with pytest.raises(GateRefusal):
        admitted(line)


_PARTS = (
    "vault", "vault/in", "vault/in/other", "vault/in/other@a", f"{ROOT}/../x", f"{ROOT}", "-F", "-r", "destroy", "rollback", "mountpoint=/",
    "canmount=on", "-o", "-x", "-d", "origin=vault/in/other@a", "receive", "--", "", "\0", "\n", "*", "$(id)", "yes", "sudo", "newest", "%recv",
    "zfs.sh", "receive.sh", "abort-receive.sh", "confirm.sh", "\udcff", "1", "@a", f"{ROOT}/x",
)  # fmt: skip
_NAMES = re.compile(rf"{re.escape(ROOT)}(/[A-Za-z0-9_.: -]+)*(@[A-Za-z0-9_.: -]+)?")


def test_whatever_is_admitted_stays_below_the_dataset() -> None:
    """10,000 requests, made of those of a push by exchanging, dropping and adding words."""
    lines = [parse_request(ssh_argv(each)[-1]) for copy in COPIES for each in (*pushed(copy), *receive_commands(copy))]
    passed = 0
    for request in mutated(lines, _PARTS, seed=2):
        try:
            _, answer = admit(request, GATE)
            assert isinstance(answer, Command | Reception)
            commands = (
                [answer]
                if isinstance(answer, Command)
                else [answer.command(head) for head in HEADS if answer.origin or not head.clone]
            )
        except GateRefusal:
            continue
        passed += 1
        for command in commands:
            require_harmless(command)
    assert passed > 300


def require_harmless(command: Command) -> None:
    script, *values = command.argv[3:] if command.argv[0] == "sh" else command.argv
    assert command.effect is not Effect.DESTROYS
    words = {
        word for before, word in itertools.pairwise(["", *values]) if before != "-x"
    }  # -x takes a property of any name
    assert not {"-F", "destroy", "rollback", "rename", "set", "inherit"} & words, values
    if "receive" in values or script == "abort-receive.sh":
        assert _NAMES.fullmatch(values[-1]), values
        assert values[-1] != ROOT, values
        assert [word for word in values if word.startswith("origin=") and not _NAMES.fullmatch(word[7:])] == []
    ancestors = {"vault", "vault/in"} if script in ("survey.sh", "space.sh", "rights.sh") else set()
    for word in values:
        if "/" in word and not word.startswith("origin="):
            assert _NAMES.fullmatch(word) or word in ancestors, values


@pytest.mark.parametrize(("newest", "named"), [(b"a", True), (b"a-1_2.3: 4", True), (b"", False), (b"a@b", False), (b"a#b", False),
                                               (b"a/b", False), (b"%recv", False), (b"\xff", False), (b"x" * 255, False), (b"a\n", False)])  # fmt: skip
def test_an_arrival_is_asked_for_by_the_name_in_its_stream(newest: bytes, named: bool) -> None:
    head = StreamHead(kind=DatasetType.FILESYSTEM, clone=False, newest=newest)
    name = newest_name(f"{ROOT}/a b", head)
    assert name == (f"{ROOT}/a b@{newest.decode()}" if named else None)


def test_the_marks_of_several_arrivals_are_asked_for_at_once() -> None:
    names = (f"{ROOT}/a b@s", f"{ROOT}/c@s")
    assert marks_command(names).argv == ("zfs", "get", "-Hp", "-o", "name,property,value", "guid,createtxg", *names)
    printed = "".join(
        f"{name}\t{wanted}\t{value}\n" for name in names for wanted, value in (("guid", 7), ("createtxg", 9))
    )
    assert parse_marks(printed) == dict.fromkeys(names, "7.9")
    for broken in ("", f"{names[0]}\tguid\t7\n", printed.replace("\t9\n", "\t-\n"), "no table\n\t\t\n"):
        assert parse_marks(broken) == {}, broken

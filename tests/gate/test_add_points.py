"""Requests of a key that adds points: what a run sends passes, and comes out as the gate would send it itself; nothing else does."""

import re

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.gate import Gate, GateRefusal
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.commands import restore_command
from orchestrator.gate.add_points import PointAddition
from orchestrator.gate.admit import admit
from orchestrator.gate.request import parse_request
from tests.engines.rsync.builders import job
from tests.gate.mutations import mutated

HOST = Host(user="root", name="server", port=None)
ROOT = Location(path="/backup/laptop", host=HOST)
WORK = ROOT / ".poolferry/work"
NAME = "2026-11-25T120000Z"
POINT = ROOT / f"points/{NAME}"
GATE = Gate(adds="/backup/laptop")
ODD = b"a b/it's/\xff\n-x"
LETTERS = "-lHogDtpAXrRxe.iLsfxCIvu"
USUAL = (
    "--log-format=%i",
    "--timeout=300",
    "--checksum-choice=xxh128",
    "--compress-choice=lz4",
    "--stats",
    "-@-1",
    "--numeric-ids",
)


def server(*words: str) -> Command:
    return Command(argv=("rsync", "--server", *words), effect=Effect.WRITES, host=HOST)


def writes() -> list[Command]:
    """Every request of a run that writes, but for rsync's own."""
    note = ROOT / ".poolferry/manifest.gz"
    return [
        script_commands.try_abilities_command(ROOT, ("owners", "times")),
        script_commands.unshare_command(WORK),
        script_commands.take_up_command(WORK, ODD, orphan=b"a b/it's/.x.AbCdEf", length=5, own=True),
        script_commands.take_up_command(WORK, b"a"),
        script_commands.finish_command(WORK, ODD, 5, holes=True),
        script_commands.discard_command(WORK, (ODD, b"b")),
        script_commands.sweep_command(WORK),
        script_commands.discard_others_command(WORK, ("home/a b", "-x")),
        script_commands.open_top_command(WORK),
        script_commands.dig_holes_command(POINT, WORK),
        script_commands.store_command(note, 1 << 30),
        script_commands.store_command(note, None),
        script_commands.store_command(Location(path=f"{POINT.path}.damaged", host=HOST), 0),
        script_commands.discard_note_command(note),
        script_commands.publish_command(ROOT, NAME, ".poolferry/manifest.gz"),
        script_commands.name_latest_command(ROOT, NAME),
    ]


def looks() -> list[Command]:
    """Every request of a run that only reads."""
    return [
        script_commands.survey_target_command(ROOT),
        script_commands.partial_files_command(WORK, own=True),
        script_commands.others_command(POINT, ("home/a b", "-x")),
        script_commands.confirm_point_command(ROOT, NAME),
        script_commands.restore_source_command(POINT, ODD),
        script_commands.survey_point_command(POINT, (ODD, b"b")),
        script_commands.show_file_command(Location(path=f"{POINT.path}.manifest.gz", host=HOST)),
        script_commands.sums_command(POINT),
        restore_command(POINT, Location(path="/srv/back"), job(), folder=True).stages[0],
        server("-n" + LETTERS[1:], "--delete", *USUAL, ".", f"{POINT.path}/"),
        server(
            "--sender", "-ntcRe.LsfxCIvu", "--checksum-choice=xxh128", "--files-from=-", "--from0", ".", f"{WORK.path}/"
        ),
    ]


def copies() -> list[Command]:
    return [
        server(LETTERS, *USUAL, "--partial-dir", ".~poolferry-partial~", ".", f"{WORK.path}/"),
        server(LETTERS, *USUAL, "--copy-dest", POINT.path, ".", f"{WORK.path}/"),
        server("-logDtpre.iLsfxCIvu", "--append", "--append", ".", f"{WORK.path}/a/.~poolferry-partial~/b"),
        server(
            "-lWHogDtpAXRxSIe.LsfxCIvu", "--delete-before", "--existing", "--ignore-missing-args", ".", f"{WORK.path}/"
        ),
    ]


def admitted(command: Command) -> Command | PointAddition:
    right, answer = admit(parse_request(ssh_argv(command)[-1]), GATE)
    assert right == "adds"
    assert isinstance(answer, Command | PointAddition)
    return answer


def test_each_request_of_a_run_is_answered_by_the_same_script() -> None:
    for asked in writes():
        answer = admitted(asked)
        assert isinstance(answer, PointAddition), asked
        assert answer.command is not None
        assert (answer.command.argv, answer.command.host) == (asked.argv, None)
    for asked in looks():
        assert (answer := admitted(asked)) == Command(argv=asked.argv, effect=Effect.READS), answer


def test_a_run_begins_once_the_gate_itself_has_waited_for_the_one_before() -> None:
    answer = admitted(script_commands.prepare_command(ROOT, "photos", ("work",), patience=330))
    assert isinstance(answer, PointAddition)
    assert answer.command is not None
    assert (answer.patience, answer.prepares, answer.command.argv[-4:]) == (
        330,
        True,
        (ROOT.path, "photos", "0", "work"),
    )


def test_a_copy_is_made_anew_as_one_from_inside_of_the_work_tree() -> None:
    for asked in copies():
        answer = admitted(asked)
        assert isinstance(answer, PointAddition)
        assert answer.command is not None
        assert (answer.area, answer.lock, answer.streams) == (".poolferry/work", "shared", True)
        words = [word.replace(POINT.path, f"../../points/{NAME}").replace(WORK.path, ".") for word in asked.argv]
        assert list(answer.command.argv) == words


def test_what_a_point_shares_is_linked_by_the_gate_alone() -> None:
    answer = admitted(script_commands.link_unchanged_command(ROOT, NAME))
    assert answer == PointAddition(area=".poolferry/work", lock="alone", links=NAME)


HOSTILE = (
    "remove.sh /backup/laptop 2026-11-25T120000Z", "mend-point.sh /backup/laptop a b", "publish.sh /backup/laptop x .poolferry/manifest.gz",
    "publish.sh /backup/laptop 2026-11-25T120000Z points/x.manifest.gz", "publish.sh /backup 2026-11-25T120000Z .poolferry/manifest.gz",
    "store.sh /backup/laptop/points/2026-11-25T120000Z.manifest.gz", "store.sh /backup/laptop/.poolferry/lock", "store.sh /etc/x",
    "store.sh /backup/laptop/.poolferry/manifest.gz -1", "store.sh /backup/laptop/.poolferry/manifest.gz 1 2",
    "store.sh /backup/laptop/.poolferry/linked", "store.sh /backup/laptop/.poolferry/../x", "store.sh /backup/laptop/.poolferry/work/x",
    "discard-note.sh /backup/laptop/.poolferry/linked", "discard-note.sh /backup/laptop/points/2026-11-25T120000Z.manifest.gz",
    "prepare.sh /backup/laptop photos 1 trash", "prepare.sh /backup/laptop 'a\"b' 1 work", "prepare.sh /backup/laptop photos x work",
    "unshare-tree.sh /backup/laptop/points/2026-11-25T120000Z", "sweep.sh /backup/laptop/points ''", "discard-others.sh /backup/laptop/points a",
    "discard-others.sh /backup/laptop/.poolferry/work", "discard-others.sh /backup/laptop/.poolferry/work ../points", "list-others.sh /etc a",
    "list-others.sh /backup/laptop", "open-top.sh /backup/laptop/points", "open-top.sh /backup/laptop/.poolferry/work 0777",
    "sweep.sh /backup/laptop/.poolferry/work one",
    "take-up.sh /backup/laptop/.poolferry/work ../../points x '' ''", "take-up.sh /backup/laptop/.poolferry/work a ../x '' ''",
    "take-up.sh /backup/laptop/points a x '' ''", "discard.sh /backup/laptop/points a b", "discard.sh /backup/laptop/.poolferry/work .. x",
    "discard.sh /backup/laptop/.poolferry/work a", "finish.sh /backup/laptop/.poolferry/work a ../x 5 ''", "close-folders.sh /backup/laptop '' .",
    "dig-holes.sh /etc /backup/laptop/.poolferry/work", "dig-holes.sh /backup/laptop/points/2026-11-25T120000Z /backup/laptop/points",
    "in-tree.sh /backup/laptop work rsync", "name-latest.sh /backup/laptop ../x", "look-in-point.sh",
    f"look-in-point.sh {POINT.path}{' x' * 2001}",
    f"dig-holes.sh /etc/points/{NAME} {WORK.path}", "try-abilities.sh /backup/laptop rm", "look-at-target.sh /backup", "sums.sh /etc",
    "separate-files.sh /backup/laptop all", "end-mirror.sh /backup/laptop", "hello.sh",
)  # fmt: skip
HOSTILE_COPIES = (
    "--server -le.L . /backup/laptop/points/2026-11-25T120000Z/", "--server -le.L . /backup/laptop/", "--server -le.L . /etc/",
    "--server -le.L . /backup/laptop/.poolferry/", "--server -le.L . /backup/laptop/.poolferry/work/../../points/",
    "--server -le.L . /backup/laptop/.poolferry/worker/", "--server -lKe.L . /backup/laptop/.poolferry/work/",
    "--server -lke.L . /backup/laptop/.poolferry/work/", "--server -lse.L . /backup/laptop/.poolferry/work/",
    *(f"--server -le.L {option} . /backup/laptop/.poolferry/work/" for option in (
        "--inplace", "--write-devices", "--backup-dir=/etc", "--temp-dir=/etc", "--link-dest=/backup/laptop/points/2026-11-25T120000Z",
        "--link-dest /backup/laptop/points/2026-11-25T120000Z", "--copy-dest /etc", "--copy-dest ../../points/x", "--partial-dir /etc",
        "--log-file=/etc/x", "--fake-super", "--super", "--rsh=id", "--daemon", "--usermap=*:root", "--remove-source-files", "-M--x",
        "--delete-after --backup", "--only-write-batch=x", "--files-from=/etc/shadow", "--munge-links",
    )),
    "--server -le.L . /backup/laptop/.poolferry/work/ /etc", "--server", "--server . /backup/laptop/.poolferry/work/",
)  # fmt: skip


HOSTILE_PROGRAMS = (
    "flock -s /backup/laptop/.poolferry/lock rsync --server -le.L . /backup/laptop/.poolferry/work/", "rm -rf /backup/laptop", "true", "id",
    "mv -T a b", "cat -- /etc/shadow", "find /backup/laptop/. -delete", "link-unchanged /backup/laptop", "link-unchanged /backup/laptop ../x",
    "link-unchanged /backup 2026-11-25T120000Z",
)  # fmt: skip


@pytest.mark.parametrize(
    "line", [*(f"sh -c x {each}" for each in HOSTILE), *(f"rsync {each}" for each in HOSTILE_COPIES), *HOSTILE_PROGRAMS]
)
def test_what_no_run_asks_is_refused(line: str) -> None:
    asked = parse_request(line)  # it is no refusal of its form alone
    with pytest.raises(GateRefusal):
        admit(asked, GATE)


_PARTS = (
    "/etc/shadow", "..", "-delete", "--", "--server", "--sender", "--inplace", "--copy-dest", "sh", "-c", "\0", "\n", "", "-le.L", ".",
    "/backup/laptop", "/backup/laptop/points", "/backup/laptop/../..", POINT.path, f"{POINT.path}.manifest.gz", WORK.path, NAME, "*", "own",
    "work", "\udcff", "../x", "5", "/backup/laptop/.poolferry/linked",
)  # fmt: skip


def fuzz(count: int) -> None:
    """Require of requests made of those of a run, by exchanging, dropping and adding words, that none leads elsewhere."""
    lines = [parse_request(ssh_argv(each)[-1]) for each in (*writes(), *looks(), *copies())]
    passed = 0
    for request in mutated(lines, _PARTS, seed=count, number=count):
        try:
            _, answer = admit(request, GATE)
        except GateRefusal:
            continue
        passed += 1
        require_harmless(answer)
    assert passed > count / 50


def require_harmless(answer: object) -> None:
    command = answer.command if isinstance(answer, PointAddition) else answer
    if command is None:
        return
    assert isinstance(command, Command)
    words = [word for word in command.argv if "\n" not in word or word.startswith("/")]  # scripts are our own text
    below = [word for word in words if word.startswith("/") and word != "/%P\\0"]
    assert all(re.match(r"/backup/laptop(/|$)", word) for word in below), words
    assert not any(".." in word.removeprefix("../../points/").split("/") for word in words), words
    if isinstance(answer, Command):
        assert answer.effect is Effect.READS
        assert (
            "--sender" in words or words[0] != "rsync" or "n" in words[2].partition("e")[0] or words[1] == "--version"
        )
        return
    assert isinstance(answer, PointAddition)
    if answer.streams:
        assert answer.area == ".poolferry/work"
        assert words[-1] == "." or words[-1].startswith("./")
        assert not {"--inplace", "--link-dest"} & set(words)
    elif answer.area == "points":
        assert [word for word in words if word.startswith("/")][-1].endswith(".damaged")
    elif not answer.area:
        assert command.argv[3] in ("publish.sh", "name-latest.sh")


def test_whatever_is_admitted_writes_in_the_work_tree_alone() -> None:
    fuzz(1_000)


@pytest.mark.long
def test_whatever_is_admitted_of_many_more_writes_in_the_work_tree_alone() -> None:
    fuzz(10_000)

"""The small scripts, run by real shells: statuses that get through, what is fine and what is not, whom they end.

The program `zfs` is a stand-in here that says what the real one says; tests/lab runs them against the real one.
"""

import grp
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.holds.survey import holds_command
from orchestrator.engines.zfs.model import ChangedEntry, ReceiveProcess
from orchestrator.engines.zfs.recovery.kit import kit_command
from orchestrator.engines.zfs.survey import parse
from orchestrator.process.scripts import script
from tests.engines.zfs.script_runner import run
from tests.engines.zfs.sides import HOST, SOURCE, side
from tests.processes import told
from tests.whole.house import wait_until

FAR = side(Location(path="tank/photos", host=HOST))
HERE = CommandHost()
SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
SMALL = PipeOptions(buffer=2 << 20)  # type: ignore[arg-type]


def in_shell(shell: str, command: Command) -> list[str]:
    return [shell, *command.argv[1:]]


def with_zfs(folder: Path, text: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "zfs").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "zfs").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "LC_ALL": "C", "HOME": str(folder)}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("status", [0, 1, 3, 137])
def test_a_far_senders_status_is_not_lost_behind_its_buffer(shell: str, status: int, tmp_path: Path) -> None:
    """Breaks when the script ends with its pipeline's own status: that is mbuffer's."""
    command = commands.send_command(("send", "-P", "t@a b"), FAR, SMALL)
    variables = with_zfs(tmp_path / "bin", f'printf "%s|" "$@"; echo why >&2; exit {status}')
    done = subprocess.run(in_shell(shell, command), capture_output=True, text=True, env=variables, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (status, "send|-P|t@a b|", "why\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_reader_that_leaves_is_told_from_a_sender_that_fails(shell: str, tmp_path: Path) -> None:
    command = commands.send_command(("send",), FAR, SMALL)
    variables = with_zfs(tmp_path / "bin", "exec head -c 200M /dev/zero")
    sending = subprocess.Popen(in_shell(shell, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables)
    assert sending.stdout
    assert sending.stderr
    sending.stdout.read(10)
    sending.stdout.close()
    assert sending.wait(60) not in (0, 141)  # mbuffer's own: the blame goes to the stage after it, or to it
    assert b"roken pipe" in sending.stderr.read()
    sending.stderr.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_far_receivers_status_comes_out(shell: str, tmp_path: Path) -> None:
    command = commands.receive_command(("receive", "-s", "v/x y"), FAR, SMALL)
    variables = with_zfs(tmp_path / "bin", 'cat; printf "%s|" "$@"; exit 7')
    done = subprocess.run(
        in_shell(shell, command), input="data ", capture_output=True, text=True, env=variables, timeout=60
    )
    assert (done.returncode, done.stdout) == (7, "data receive|-s|v/x y|")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_far_end_whose_other_end_is_gone_ends_by_itself(shell: str, tmp_path: Path) -> None:
    """A machine that lost its power closes nothing: bytes do not come any more, or nobody takes them."""
    variables = with_zfs(tmp_path / "bin", "case $1 in send) exec cat /dev/zero;; *) exec cat >/dev/null;; esac")

    def impatient(command: Command) -> list[str]:
        return ["2" if word == "600" else word for word in in_shell(shell, command)]

    receive = impatient(commands.receive_command(("receive", "v/x"), FAR, SMALL))
    send = impatient(commands.send_command(("send", "t@a"), FAR, SMALL))
    with (
        subprocess.Popen(receive, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables) as receiving,
        subprocess.Popen(send, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables) as sending,
    ):
        assert receiving.stdin
        receiving.stdin.write(b"the beginning of a stream")
        receiving.stdin.flush()
        receiving.wait(30)
        assert sending.wait(30) != 0


# (what zfs says and ends with, whether the step is fine)
TAG, GONE, HELD = "tag already exists on this dataset", "dataset does not exist", "no such tag on this dataset"


@pytest.mark.parametrize(
    ("said", "fine"),
    [
        ("", True),
        (f"echo \"cannot hold snapshot 't@a': {TAG}\" >&2; exit 1", True),
        (f"echo \"cannot hold snapshot 't@a': {GONE}\" >&2; exit 1", True),
        ("echo \"cannot hold snapshot 't@a': out of space\" >&2; exit 1", False),
        (f"echo \"cannot hold snapshot 't@a': {TAG}\ncannot hold snapshot 't@b': out of space\" >&2; exit 1", False),
    ],
)
def test_holding_again_is_fine_and_so_is_what_is_gone(said: str, fine: bool, tmp_path: Path) -> None:
    """A snapshot that its owner destroys after the look holds up nobody else: its own send fails."""
    (command,) = commands.hold_commands("tag", ("t@a", "t@b"), side(SOURCE))
    done = run(command, tmp_path, {"zfs": said})
    assert (done.returncode == 0) is fine, done
    assert ("out of space" in done.stderr) is not fine
    assert TAG not in done.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("number", [1, 7, 8, 30])
def test_many_are_held_by_eight_programs_and_none_is_forgotten(shell: str, number: int, tmp_path: Path) -> None:
    names = tuple(f"t/a b@{place}'$x" for place in range(number))
    for commanded in (commands.hold_commands, commands.release_commands):
        (command,) = commanded("tag", names, side(SOURCE))
        told = tmp_path / commanded.__name__
        variables = with_zfs(tmp_path / "bin", f'{{ echo "=$1 $2"; shift 2; printf "%s\\n" "$@"; }} >"{told}.$$"')
        subprocess.run(in_shell(shell, command), check=True, env=variables, timeout=60)
        said = [part.read_text().splitlines() for part in tmp_path.glob(f"{told.name}.*")]
        assert len(said) == min(8, number)
        assert {first for first, *_ in said} == {f"={commanded.__name__.partition('_')[0]} tag"}
        assert sorted(name for _, *rest in said for name in rest) == sorted(names)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_program_that_dies_without_a_word_has_held_nothing(shell: str, tmp_path: Path) -> None:
    (command,) = commands.hold_commands("tag", tuple(f"t@{place}" for place in range(9)), side(SOURCE))
    variables = with_zfs(tmp_path / "bin", "case $* in *@5*) kill -9 $$;; esac")
    done = subprocess.run(in_shell(shell, command), capture_output=True, text=True, env=variables, timeout=60)
    assert done.returncode == 1
    assert "zfs hold ended with 137" in done.stderr


@pytest.mark.parametrize(
    ("said", "fine"),
    [
        (f"echo \"cannot release hold from snapshot 't@a': {HELD}\" >&2; exit 1", True),
        (f"echo \"cannot release hold from snapshot 't@a': {GONE}\" >&2; exit 1", True),
        ("echo \"cannot release hold from snapshot 't@a': permission denied\" >&2; exit 1", False),
    ],
)
def test_releasing_what_is_not_held_is_fine(said: str, fine: bool, tmp_path: Path) -> None:
    (command,) = commands.release_commands("tag", ("t@a",), side(SOURCE))
    assert (run(command, tmp_path, {"zfs": said}).returncode == 0) is fine


@pytest.mark.parametrize(
    ("said", "fine"),
    [
        ("", True),
        ("echo \"'v/x' does not have any resumable receive state to abort\" >&2; exit 1", True),
        (f"echo \"cannot open 'v/x': {GONE}\" >&2; exit 2", True),
        ('echo "cannot receive: dataset is busy" >&2; exit 1', False),
    ],
)
def test_aborting_nothing_is_fine(said: str, fine: bool, tmp_path: Path) -> None:
    done = run(commands.abort_command("v/x", HERE), tmp_path, {"zfs": said})
    assert (done.returncode == 0) is fine
    assert bool(done.stderr) is not fine


ONE_FAILS = """
case $2 in
*@b7) echo "cannot create bookmark 't#m7': out of space" >&2; exit 1;;
*@b6) echo "cannot open 't@b6': dataset does not exist" >&2; exit 1;;
*@b5) echo "cannot create bookmark 't#5': bookmark exists" >&2; exit 1;;
*) echo "$@" >>"${0%/*}/made";;
esac
"""


def test_bookmarks_one_by_one_name_the_one_that_fails(tmp_path: Path) -> None:
    marks = tuple(("t", f"@b{n}", f"m{n}") for n in range(20))
    (command,) = commands.bookmark_commands(marks, side(SOURCE, programs=False))
    done = run(command, tmp_path, {"zfs": ONE_FAILS})
    assert (done.returncode, done.stderr) == (1, "cannot create bookmark 't#m7': out of space\n")
    made = (tmp_path / "made").read_text().splitlines()
    assert sorted(made) == sorted(f"bookmark t@b{n} t#m{n}" for n in range(20) if n not in (5, 6, 7))
    (fine,) = commands.bookmark_commands(marks[:7], side(SOURCE, programs=False))
    assert run(fine, tmp_path, {"zfs": ONE_FAILS}).returncode == 0


def test_dropping_what_is_gone_is_fine_and_a_failure_is_not_lost(tmp_path: Path) -> None:
    zfs = 'case $2 in *gone) echo "bookmark \'$2\' does not exist." >&2; exit 1;; *bad) echo "cannot destroy" >&2; exit 1;; esac'
    fine, bad = (
        next(commands.destroy_bookmark_commands(names, side(SOURCE)))
        for names in (("t#a", "t#gone", *(f"t#{n}" for n in range(20))), ("t#bad", *(f"t#{n}" for n in range(20))))
    )
    assert run(fine, tmp_path, {"zfs": zfs}).returncode == 0
    done = run(bad, tmp_path, {"zfs": zfs})
    assert (done.returncode, done.stderr) == (1, "cannot destroy\n")


@contextmanager
def receiving(
    folder: Path, *words: str, text: str = "read -r line", user: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose argv is `zfs` with these words; the first is a script that it runs."""
    folder.mkdir(exist_ok=True)
    (folder / words[0]).write_text(text)
    process = subprocess.Popen(
        ["zfs", *words],
        executable="/bin/bash",
        cwd=folder,
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        user=user,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_only_that_very_receive_is_ended(tmp_path: Path) -> None:
    with (
        receiving(tmp_path, "receive", "-s", "v/a b") as ours,
        receiving(tmp_path, "receive", "-s", "v/a") as other,
        receiving(tmp_path, "send", "-s", "v/a b") as sending,
    ):
        for wrong in (other, sending):
            assert run(commands.end_receive_command("v/a b", wrong.pid, HERE), tmp_path, {}).returncode == 0
            assert wrong.poll() is None
        done = run(commands.end_receive_command("v/a b", ours.pid, HERE), tmp_path, {})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        # It was still unreaped, and yet not waited for. A bash that is about to read when the signal comes ends with 0.
        assert ours.wait(5) in (-15, 0)
        done = run(commands.end_receive_command("v/a b", ours.pid, HERE), tmp_path, {})
        assert (done.returncode, done.stderr) == (0, "")


def test_a_receive_of_root_is_ended_with_sudo(tmp_path: Path) -> None:
    where = CommandHost(sudo=True)
    told = tmp_path / "told"
    sudo = {"sudo": f'printf "%s " "$@" >{told}; shift; exec "$@"'}
    with receiving(tmp_path, "receive", "-s", "v/x") as ours:
        assert run(commands.end_receive_command("v/x", ours.pid, where), tmp_path, sudo).returncode == 0
        assert ours.wait(5) == -15
        assert told.read_text() == f"-n kill -TERM {ours.pid} "


def test_a_receive_that_does_not_hear_is_killed(tmp_path: Path) -> None:
    with receiving(tmp_path, "recv", "v/x", text="trap '' TERM; while :; do read -r -t 1 line; done") as deaf:
        wait_until(lambda: _ignores(deaf.pid))
        done = run(commands.end_receive_command("v/x", deaf.pid, HERE), tmp_path, {"sleep": "exec /bin/sleep 0.01"})
        assert done.returncode == 0
        assert deaf.wait(5) == -9


def _ignores(pid: int) -> bool:
    line = next(line for line in told(pid, "status").decode().splitlines() if line.startswith("SigIgn"))
    return int(line.split()[1], 16) & 1 << 14 != 0


def test_who_receives_is_found(tmp_path: Path) -> None:
    with (
        receiving(tmp_path / "a", "receive", "-s", "-x", "poolferry:receive", "v/copies/photos/a b") as below,
        receiving(tmp_path / "b", "recv", "v/copies/photos") as root,
        receiving(tmp_path / "c", "receive", "v/copies/photos2"),
        receiving(tmp_path / "d", "send", "receive", "v/copies/photos"),
        receiving(tmp_path / "e", "receive", "x\n=process y", "\n=process 1\nzfs\nreceive\nv/copies/photos/c"),
    ):
        done = run(commands.receiving_command(None), tmp_path, {})
        assert done.returncode == 0
        found = parse.parse_receiving(done.stdout.splitlines(), "v/copies/photos")
        assert found == {
            "a b": ReceiveProcess(pid=below.pid, ours=True),
            "": ReceiveProcess(pid=root.pid, ours=False),
        }
    done = run(commands.receiving_command(None), tmp_path, {})
    assert parse.parse_receiving(done.stdout.splitlines(), "v/copies/photos") == {}


HELD = """
case $1 in
list) case "$*" in *bookmark*) ;;
  *userrefs,used*) printf "1\\t0\\t7\\t%s\\n" t/a@1 t/b@gone t/b@2 t/c@3;; *) printf "%s\\t7\\t8\\t1\\n" t/a@1 t/b@gone t/b@2 t/c@3;; esac;;
holds) shift 2; code=0
  for name in "$@"; do case $name in *gone) echo "cannot open '$name': WHY" >&2; code=1;; *) printf "$name\\tkeep\\t1\\n";; esac; done
  exit $code;;
esac
"""


@pytest.mark.parametrize("command", [holds_command(Location(path="t")), kit_command(Location(path="t"))])
def test_a_snapshot_that_goes_hides_no_holds_of_others(command: Command, tmp_path: Path) -> None:
    programs = {"zpool": "printf '7\\tx\\n'", "zdb": ":", "find": ":"}
    done = run(command, tmp_path, programs | {"zfs": HELD.replace("WHY", "dataset does not exist")})
    assert (done.returncode, done.stdout.count("=end")) == (0, 1), done
    assert re.findall(r"^(.*)\tkeep\t1$", done.stdout, re.MULTILINE) == ["t/a@1", "t/b@2", "t/c@3"]
    unseen = run(command, tmp_path, programs | {"zfs": HELD.replace("WHY", "pool I/O is currently suspended")})
    assert (unseen.returncode, "=end" in unseen.stdout) == (1, False), "unseen is not none"
    assert "t/b@gone" in unseen.stderr


ALLOWED = """---- Permissions on v/copies/photos --------------------------------
Permission sets:
\t@in create,receive
Local permissions:
\t%s
---- Permissions on v/copies ---------------------------------------
Local permissions:
\t%s
Descendent permissions:
\t%s
---- Permissions on v ----------------------------------------------
Local+Descendent permissions:
\tuser root receive
\t%s
"""
NOTHING = "user daemon receive"
NOBODY = pwd.getpwuid(65534).pw_name
TEAM = grp.getgrgid(pwd.getpwuid(65534).pw_gid).gr_name


@pytest.mark.root
@pytest.mark.parametrize(
    ("lines", "may"),
    [
        ((NOTHING, NOTHING, NOTHING, NOTHING), False),
        ((f"user {NOBODY} create,mount,receive", NOTHING, NOTHING, NOTHING), True),
        ((f"user {NOBODY} create,@in", NOTHING, NOTHING, NOTHING), True),
        ((f"group {TEAM} receive:append", NOTHING, NOTHING, NOTHING), True),
        ((NOTHING, f"user {NOBODY} receive", NOTHING, NOTHING), False),
        ((NOTHING, NOTHING, f"user {NOBODY} receive", NOTHING), True),
        ((NOTHING, NOTHING, NOTHING, f"user {NOBODY} receive"), True),
        ((NOTHING, NOTHING, NOTHING, "everyone receive"), True),
        ((f"user {NOBODY} create,send,received", NOTHING, NOTHING, "everyone mount"), False),
    ],
)
def test_of_other_users_only_who_may_receive_is_found(tmp_path: Path, lines: tuple[str, ...], may: bool) -> None:
    """Any user may give a process of hers the words of a receive: it holds up no run, but that of who was allowed to."""
    (tmp_path / "allowed").write_text(ALLOWED % lines)
    zfs = f'[ "$1 $2" = "allow v/copies/photos" ] && cat {tmp_path}/allowed'
    with receiving(tmp_path / "n", "receive", "-x", "poolferry:receive", "v/copies/photos/a", user=65534) as other:
        printed = run(commands.receiving_command(None), tmp_path, {"zfs": zfs}).stdout
        found = parse.parse_receiving(printed.splitlines(), "v/copies")
        assert found == ({"photos/a": ReceiveProcess(pid=other.pid, ours=False)} if may else {})


WEIGHED = """
for word in "$@"; do case $word in *bad) echo no >&2; exit 1;; esac; done
printf "%s\n" "$*" >>"${0%/*}/asked"; printf "full\tx\t9\nsize\t%s\n" "$#"
"""


def test_each_dry_send_tells_its_size(tmp_path: Path) -> None:
    sends = [
        commands.send_command(("send", *words), side(SOURCE), PipeOptions())
        for words in (
            ("-PLp", "t/a b@a"),
            ("-P", "-t", "1-2-3-4"),
            ("-P", "-i", "t#a", "t@bad"),
            ("-P", "-I", "t@a", "t@b"),
        )
    ]
    done = run(commands.send_sizes_command(sends, HERE), tmp_path, {"zfs": WEIGHED})
    assert parse.parse_sizes(done.stdout.splitlines()) == [3, 4, None, 5]
    requested = (tmp_path / "asked").read_text().splitlines()
    assert requested == ["send -PLpn t/a b@a", "send -Pn -t 1-2-3-4", "send -Pn -I t@a t@b"]


@pytest.mark.parametrize(
    ("said", "zpool", "fine"),
    [
        ("dataset does not exist", "exit 0", True),
        ("dataset does not exist", "echo \"cannot open 'tank': no such pool\" >&2; exit 1", False),
        ("pool I/O is currently suspended", "exit 0", False),
    ],
)
def test_points_of_a_copy_that_is_not_there(said: str, zpool: str, fine: bool, tmp_path: Path) -> None:
    """A pool that is not imported is no copy without points."""
    zfs = f"echo \"cannot open 'v/x': {said}\" >&2; exit 1"
    done = run(commands.points_command(SOURCE), tmp_path, {"zfs": zfs, "zpool": zpool})
    assert (done.returncode == 0, done.stdout) == (fine, "")


LOOKED = """
case $1 in
version) echo zfs-2.3.9-1;;
get) case $3$9 in *@*) ;; *) %s;; esac;;
list) case "$*" in
  "list -H -o name tank/photos") %root;;
  *-o\\ name,available*) printf "tank\\t9\\toff\\n"; exit 1;; *) printf "tank/photos@a\\t1\\t2\\n";; esac;;
esac
"""


def look(
    folder: Path,
    get: str,
    *,
    zpool: str = "printf '7\\tONLINE\\n'",
    sudo: bool = False,
    above: bool = False,
    root: str = ":",
) -> parse.SideListing:
    """Return what the look's script tells with these stand-ins."""
    command = commands.survey_command(SOURCE, target=False, recursive=True, sudo=sudo, above=above, created=False)
    done = run(command, folder, {"zfs": LOOKED.replace("%s", get).replace("%root", root), "zpool": zpool})
    assert done.returncode == 0, done
    return parse.parse_survey(done.stdout.encode().split(b"\n"))


GOT = "printf 'tank/photos\\ttype\\tfilesystem\\t-\\n'"
ABSENT = "echo \"cannot open 'tank/photos': dataset does not exist\" >&2; exit 1"


def test_a_look_tells_who_we_are_and_what_is_there(tmp_path: Path) -> None:
    seen = look(tmp_path, GOT)
    assert (seen.root, seen.sudo, seen.mbuffer) == (os.geteuid() == 0, False, True)
    assert (seen.health, seen.pool_guid, seen.there, seen.whole, seen.above) == ("ONLINE", 7, True, True, {})
    assert (seen.properties, list(seen.snapshots)) == ({"tank/photos": {"type": ("filesystem", "-")}}, ["tank/photos"])
    assert seen.version
    assert look(tmp_path, GOT, sudo=True).sudo is (os.geteuid() != 0)
    assert look(tmp_path, GOT, above=True).above == {"tank": (9, False)}


def test_a_look_tells_what_is_absent_from_what_fails(tmp_path: Path) -> None:
    seen = look(tmp_path, ABSENT, root=ABSENT)
    assert (seen.there, seen.whole, seen.above, seen.snapshots) == (False, True, {"tank": (9, False)}, {})
    no_pool = look(tmp_path, GOT, zpool="echo \"cannot open 'tank': no such pool\" >&2; exit 1")
    assert (no_pool.health, no_pool.there) == ("ABSENT", False)
    suspended = look(tmp_path, "sleep 600", zpool="printf '7\\tSUSPENDED\\n'")
    assert (suspended.health, suspended.there) == ("SUSPENDED", False)


def test_a_look_in_which_a_dataset_went_is_made_again(tmp_path: Path) -> None:
    went = f"[ -e {tmp_path}/again ] || {{ touch {tmp_path}/again; {ABSENT.replace('photos', 'photos/x')}; }}; {GOT}"
    seen = look(tmp_path, went)
    assert (seen.there, seen.whole, list(seen.properties)) == (True, True, ["tank/photos"])


@pytest.mark.parametrize(
    ("get", "zpool", "says"),
    [
        ("echo permission denied >&2; exit 1", "printf '7\\tONLINE\\n'", "permission denied"),
        (GOT, "echo internal error >&2; exit 1", "internal error"),
        (
            ABSENT.replace("photos", "photos/x"),
            "printf '7\\tONLINE\\n'",
            "cannot open 'tank/photos/x': dataset does not exist",
        ),
    ],
)
def test_a_look_that_fails_ends_badly(get: str, zpool: str, says: str, tmp_path: Path) -> None:
    command = commands.survey_command(SOURCE, target=False, recursive=True, sudo=False, above=False, created=False)
    done = run(command, tmp_path, {"zfs": LOOKED.replace("%s", get).replace("%root", ":"), "zpool": zpool})
    assert (done.returncode, done.stderr.strip()) == (1, says)


PREVIOUS = """
case "$1 $*" in
*prevsnap*)
  printf "v/a b\\tprevsnap\\tv/a b@one\\t-\\nv/a b\\tguid\\t5\\t-\\n"
  printf "v/none\\tprevsnap\\t-\\t-\\nv/none\\tguid\\t6\\t-\\nv/clone\\tprevsnap\\tv/a b@one\\t-\\nv/clone\\tguid\\t7\\t-\\n" ;;
list*) shift 6; printf "%s\\t1\\t2\\n" "$@";;
esac
"""


def test_the_newest_snapshots_are_listed_by_name_and_those_of_other_datasets_are_not(tmp_path: Path) -> None:
    """A clone without a snapshot of its own names the one that it comes from."""
    command = commands.survey_command(
        SOURCE, target=True, recursive=True, sudo=False, above=False, created=False, newest=True
    )
    done = run(command, tmp_path, {"zfs": PREVIOUS, "zpool": "printf '7\\tONLINE\\n'"})
    assert done.stdout.partition("=snapshots\n")[2].splitlines() == ["v/a b@one\t1\t2", "=end"]
    assert parse.parse_survey(done.stdout.encode().split(b"\n")).properties["v/a b"]["guid"] == ("5", "-")
    nothing = run(command, tmp_path, {"zfs": PREVIOUS.replace("v/a b@one", "-"), "zpool": "printf '7\\tONLINE\\n'"})
    assert nothing.stdout.endswith("=snapshots\n=end\n")
    # One of the names is gone, or was none: then all are listed.
    some = PREVIOUS.replace("list*) shift 6", 'list*-r*) printf "v/a b@one\\t1\\t2\\n"; exit;; list*) exit 1; shift 6')
    done = run(command, tmp_path, {"zfs": some, "zpool": "printf '7\\tONLINE\\n'"})
    assert done.stdout.partition("=snapshots\n")[2].splitlines() == ["v/a b@one\t1\t2", "=end"]
    gone = PREVIOUS.replace("list*) shift 6", "list*) echo no >&2; exit 1")
    done = run(command, tmp_path, {"zfs": gone, "zpool": "printf '7\\tONLINE\\n'"})
    assert (done.returncode != 0, done.stderr.strip(), "=end" in done.stdout) == (True, "no", False)


@pytest.mark.parametrize(
    ("said", "code"),
    [("cannot open 'v/x@a': dataset does not exist", 0), ("cannot open 'v': pool I/O is currently suspended", 1)],
)
def test_what_was_promised_and_is_not_there_is_no_failure_of_the_look(said: str, code: int, tmp_path: Path) -> None:
    zfs = f'printf "v/x\\tprevsnap\\tv/x@b\\n"; echo "{said}" >&2; exit 1'
    done = run(commands.confirm_command(("v/x", "v/x@a"), None), tmp_path, {"zfs": zfs})
    assert (done.returncode, done.stdout) == (code, "v/x\tprevsnap\tv/x@b\n")
    assert (done.stderr.strip() == "") == (code == 0)
    assert parse.parse_property_listing(done.stdout.encode().splitlines()) == {("v/x", "prevsnap"): "v/x@b"}


def test_changes_are_listed_whole_or_without_an_end(tmp_path: Path) -> None:
    """A dataset that is not mounted is mounted for the look; more lines than wanted, and a failure, have no end."""
    programs = {
        "unshare": 'shift 3; exec "$@"', "mount": f'echo "$*" >>{tmp_path}/mounts', "umount": f'echo "$*" >>{tmp_path}/umounts',
        "zfs": 'case $3 in *bad@*) exit 1;; *many@*) yes "M\tF\t/mnt/x";; *) printf "M\tF\t/mnt/x\n";; esac',
    }  # fmt: skip
    command = commands.changes_command(("v/a b@s", "v/bad@s", "v/many@s"), side(SOURCE))
    done = run(command, tmp_path, programs)
    assert (done.returncode, done.stderr) == (0, "")
    assert parse.parse_changes(done.stdout.encode().split(b"\n")) == {
        "v/a b": (ChangedEntry(how="M", folder=False, path="x"),)
    }
    assert done.stdout.count("\n") < commands.MOST_CHANGES + 20
    assert "ro,nosuid,nodev,noexec" in (tmp_path / "mounts").read_text().replace("ro,zfsutil", "ro")
    assert (tmp_path / "umounts").read_text() == "/mnt\n" * 3


def test_a_beat_that_forgets_the_first_signal_is_ended_too() -> None:
    """A child so young that it still has its parent's traps does so; its pipe would hold up whoever reads our output."""
    forgetful = 'beat() { trap "trap - TERM" TERM; echo >&2; while :; do sleep 0.05; done; }'
    text = f"{script('engines/zfs', 'work-alone.sh')}\n{forgetful}\nwork() {{ sleep 0.3; echo worked; }}\nwork_alone\n"
    ended = subprocess.run(["sh", "-c", text], capture_output=True, text=True, timeout=20, start_new_session=True)
    assert (ended.returncode, ended.stdout) == (0, "worked\n")


# The value of one property has several lines, which pass for another dataset's, and for parts of what a script prints.
FORGED = "Lce\n=absent\nt/ann\tpoolferry:flags\tLceb\tlocal\n=allowed\n"
OWNERS = """
value="$(printf "%s" '{value}'; echo .)"; value=${{value%.}}
case "$*" in
*"-o name,property,source all"*)
  for d in t t/ann t/eve; do
    printf "%s\\ttype\\t-\\n%s\\tmountpoint\\tdefault\\n%s\\tcopies\\tlocal\\n" $d $d $d
    [ $d = t ] || printf "%s\\tuser:note\\tlocal\\n" $d
  done;;
*"value,source type "*) printf "%s\\ttype\\t%s\\t-\\n" t filesystem t/ann filesystem t/eve volume;;
*"value,received,source copies "*) printf "%s\\tcopies\\t2\\t3\\tlocal\\n" t t/ann t/eve;;
*"-o value user:note t/eve") printf "%s\\n" "$value";;
*"-o received user:note t/eve") echo -;;
*"-o source user:note t/eve") echo local;;
*"user:note t/eve") printf "t/eve\\tuser:note\\t%s\\t-\\tlocal\\n" "$value";;
*"mountpoint t/eve") printf "t/eve\\tmountpoint\\t-\\t-\\t-\\n";;
*"mountpoint,user:note "*)
  case "$*" in *" t" | *" t/ann" | *" t/eve")
    for d in t t/ann t/eve; do
      case "$*" in *"-r t" | *" $d") ;; *) continue;; esac
      printf "%s\\tmountpoint\\t/%s\\t-\\tlocal\\n" $d $d
      case $d in
      t) printf "t\\tuser:note\\t-\\t-\\t-\\n";;
      t/ann) printf "t/ann\\tuser:note\\ta b\\t-\\tlocal\\n";;
      t/eve) printf "t/eve\\tuser:note\\t%s\\t-\\tlocal\\n" "$value";;
      esac
    done;;
  esac;;
esac
"""


@pytest.mark.parametrize("note", ["user:note", "rootcontext"])
@pytest.mark.parametrize("value", ["plain", FORGED])
def test_a_property_of_several_lines_passes_for_no_other(value: str, note: str, tmp_path: Path) -> None:
    functions = script("engines/zfs", "properties-by-line.sh")
    command = Command(argv=("sh", "-c", f"{functions}properties_by_line -r t", "x"), effect=Effect.READS)
    done = run(command, tmp_path, {"zfs": OWNERS.format(value=value).replace("user:note", note)})
    lines = done.stdout.splitlines()
    assert all(line.count("\t") == 4 for line in lines), done
    told = {(name, kind): line[0] for name, kind, *line in (line.split("\t") for line in lines)}
    assert len(told) == len(lines)
    assert told["t/ann", note] == "a b"
    assert told["t/eve", note] == value.partition("\n")[0]
    assert told["t/eve", "type"] == "volume"
    assert "t/eve\ttype\tvolume\t-\t-" in lines, "what has a source nowhere was never received"
    assert "t/eve\tcopies\t2\t3\tlocal" in lines
    assert ("t", note) not in told, "what is not set is not listed"
    assert ("t/ann", "poolferry:flags") not in told


@pytest.mark.parametrize(("said", "code"), [("I/O error", 1), ("dataset does not exist", 0)])
def test_a_property_that_cannot_be_read_is_not_left_out_without_a_word(said: str, code: int, tmp_path: Path) -> None:
    """A dataset that is gone meanwhile has none."""
    functions = script("engines/zfs", "properties-by-line.sh")
    command = Command(argv=("sh", "-c", f"{functions}properties_by_line -r t", "x"), effect=Effect.READS)
    fails = f'case "$*" in *user:note*t/ann) echo "cannot open \'t/ann\': {said}" >&2; exit 1;; esac\n'
    done = run(command, tmp_path, {"zfs": fails + OWNERS.format(value=FORGED)})
    assert done.returncode == code, done
    assert ("t/eve\tuser:note\tLce\t" in done.stdout) is (code == 0)

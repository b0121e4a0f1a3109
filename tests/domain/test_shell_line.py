"""Logged lines can be pasted."""

import json
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.command_line import (
    command_line,
    pipeline_line,
    quoted,
    rsync_shell,
    sharing_options,
    ssh_argv,
)
from orchestrator.domain.place import HERE, Host
from orchestrator.domain.plan import Command, Effect, Pipeline

WORDS = (
    "plain",
    "a b",
    "it's",
    "new\nline",
    "\udcff\udcfe1",
    "tab\tx",
    "\\n",
    "ü",
    "\u2028",
    "",
    "$(id)",
    "\x1b[31m'",
    "\\x41\n",
)


def test_a_shell_reads_back_every_word() -> None:
    show = "import sys, json; print(json.dumps(sys.argv[1:]))"
    line = command_line(Command(argv=(sys.executable, "-S", "-c", show, *WORDS), effect=Effect.READS))
    assert line.isprintable()
    said = subprocess.run(["bash", "-c", line], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    assert json.loads(said) == list(WORDS)


@given(st.binary().map(lambda name: name.decode("utf-8", "surrogateescape")))
def test_every_line_can_be_printed(word: str) -> None:
    line = quoted(word).encode("utf-8").decode("utf-8")
    assert not any(char in line for char in "\n\r\t\x1b\x00\x7f\u2028\u0085")


def test_a_pipeline_names_ssh_files_and_settings() -> None:
    send = Command(argv=("zfs", "send", "a@b"), effect=Effect.READS, environment=(("A", "x y"),))
    receive = Command(argv=("zfs", "receive", "c"), effect=Effect.WRITES, host=Host(name="box", port=22))
    line = pipeline_line(Pipeline(stages=(send, receive), reads="/in put", keeps="/out put"), ("-4",))
    assert line.startswith(
        "A='x y' zfs send a@b < '/in put' | ssh -oBatchMode=yes -oForwardAgent=no -oForwardX11=no -oClearAllForwardings=yes -4 "
    )
    assert line.endswith(" -p 22 -- box 'env LC_ALL=C.UTF-8 zfs receive c' >> '/out put'")


def test_secrets_are_masked_here_and_there() -> None:
    for host in (None, Host(name="box")):
        line = command_line(
            Command(argv=("x",), effect=Effect.READS, host=host, environment=(("RSYNC_PASSWORD", "hush"),))
        )
        assert "hush" not in line
        assert "RSYNC_PASSWORD=" in line


def test_only_scripts_of_several_lines_are_packed() -> None:
    from orchestrator.domain.command_line import pack_script

    for argv in (("zfs", "list"), ("sh", "-c", "exec true", "sh"), ("sh", "-c", "exec true", "look.sh")):
        assert pack_script(Command(argv=argv, effect=Effect.READS)) == argv


def test_an_rsync_shares_the_connection_of_its_run_and_makes_none() -> None:
    host = Host(name="nas", user=None)
    shell = " ".join(rsync_shell(host))
    copy = Command(argv=("rsync", "-e", shell, "nas:/a", "/b"), effect=Effect.WRITES)
    assert ssh_argv(copy) == copy.argv
    assert ssh_argv(copy, ("-4",)) == copy.argv
    shared = ssh_argv(copy, sharing_options(("-4",), "/run/ours"))
    assert shared[2] != shell
    assert "-oControlMaster=no" in shared[2].split()
    assert "-oControlPath=/run/ours/%C" in shared[2].split()
    assert (*shared[:2], *shared[3:]) == (*copy.argv[:2], *copy.argv[3:])


def test_the_far_half_within_this_machine_goes_through_a_shell_alone() -> None:
    command = Command(argv=("ls", "a b"), effect=Effect.READS, host=HERE)
    assert ssh_argv(command)[:2] == ("sh", "-c")
    assert ssh_argv(command)[2].endswith("ls 'a b'")
    assert rsync_shell(HERE)[:2] == ("sh", "-c")

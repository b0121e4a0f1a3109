"""ssh lines as a real ssh, a real shell and a real rsync understand them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.domain.command_line import rsync_shell, ssh_argv
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect

BOX = Host(name="box", user="ann", port=2222)
ODD = ("a b", "it's", 'say "x"', "$HOME", "new\nline", "\udcff", "-l", "*", "", "back\\slash", ";id")


def settings(argv: tuple[str, ...]) -> dict[str, str]:
    """Return what ssh itself makes of these arguments."""
    said = subprocess.run([argv[0], "-F", "none", "-G", *argv[1:]], capture_output=True, text=True, check=True).stdout
    return dict(line.partition(" ")[::2] for line in said.splitlines())


def test_a_local_command_stays_as_it_is() -> None:
    command = Command(argv=("zfs", "list"), effect=Effect.READS, environment=(("A", "b"),))
    assert ssh_argv(command, ("-4",)) == ("zfs", "list")


def test_ssh_understands_the_words() -> None:
    seen = settings(ssh_argv(Command(argv=("true",), effect=Effect.READS, host=BOX)))
    assert (seen["host"], seen["user"], seen["port"]) == ("box", "ann", "2222")
    assert (seen["batchmode"], seen["connecttimeout"], seen["serveraliveinterval"]) == ("yes", "15", "15")
    assert (seen["serveralivecountmax"], seen["requesttty"], seen["forwardx11"]) == ("4", "false", "no")


def test_the_jobs_options_win_except_over_questions() -> None:
    command = Command(argv=("true",), effect=Effect.READS, host=BOX)
    seen = settings(ssh_argv(command, ("-oConnectTimeout=60", "-oServerAliveInterval=5", "-oBatchMode=no")))
    assert (seen["connecttimeout"], seen["serveraliveinterval"], seen["batchmode"]) == ("60", "5", "yes")


def test_nothing_of_this_machine_is_lent_to_a_host_whatever_the_jobs_options_say() -> None:
    command = Command(argv=("true",), effect=Effect.READS, host=BOX)
    seen = settings(ssh_argv(command, ("-A", "-X", "-oForwardAgent=yes", "-oForwardX11=yes", "-L8000:localhost:80")))
    assert (seen["forwardagent"], seen["forwardx11"], seen["clearallforwardings"]) == ("no", "no", "yes")
    assert "localforward" not in seen


def test_a_host_is_never_an_option() -> None:
    argv = ssh_argv(Command(argv=("true",), effect=Effect.READS, host=Host(name="box")))
    assert argv[-3:-1] == ("--", "box")
    assert "-l" not in argv
    assert "-p" not in argv


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_remote_shell_gives_the_program_exactly_these_words(shell: str) -> None:
    show = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['LC_ALL'], os.environ['ODD']]))"
    command = Command(
        argv=(sys.executable, "-S", "-c", show, *ODD),
        effect=Effect.READS,
        host=BOX,
        environment=(("ODD", "two words; and 'more'"),),
    )
    said = subprocess.run([shell, "-c", ssh_argv(command)[-1]], capture_output=True, check=True).stdout
    assert json.loads(said) == [list(ODD), "C.UTF-8", "two words; and 'more'"]


def test_rsync_splits_the_shell_into_the_words_meant(tmp_path: Path) -> None:
    rsync = shutil.which("rsync")
    assert rsync, "rsync is one of poolferry's programs"
    fake = tmp_path / "ssh"
    fake.write_text(f"#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done > {tmp_path}/words\nexit 1\n")
    fake.chmod(0o755)
    options = (
        "-oUserKnownHostsFile=/a b/c",
        "-i",
        "it's",
        '-o"q"',
        "''",
        "-oProxyCommand=nc -x 'p \"q\"' %h %p",
        "\udcff",
    )
    shell = " ".join(rsync_shell(BOX, options))
    subprocess.run(
        [rsync, "-e", shell, "ann@box:/x", str(tmp_path / "y")],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
    )
    words = [word.decode("utf-8", "surrogateescape") for word in (tmp_path / "words").read_bytes().split(b"\0")]
    ours = ssh_argv(Command(argv=("x",), effect=Effect.READS, host=BOX), (*options, "-oLogLevel=ERROR"))
    assert words[: words.index("-l")] == list(ours[1 : ours.index("-l")])


def test_rsync_cannot_carry_an_empty_option() -> None:
    with pytest.raises(ValueError, match="empty"):
        rsync_shell(BOX, ("",))

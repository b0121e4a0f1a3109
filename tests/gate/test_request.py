"""Command lines that sshd hands on are taken apart, and no shell ever sees them."""

import random
import shlex

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.gate import GateRefusal
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.script_commands import survey_source_command
from orchestrator.gate.request import GateRequest, parse_request, split_line

HOST = Host(user="root", name="nas", port=None)


def sent(command: Command) -> str:
    """The line that sshd gets of a command of ours."""
    return ssh_argv(command)[-1]


def test_a_script_is_known_by_its_name_and_its_text_is_thrown_away() -> None:
    asked = survey_source_command(SourceTree(root=Location(path="/srv/it's", host=HOST)), whole=True)
    assert parse_request(sent(asked)) == GateRequest(name="look-at-source.sh", values=("/srv/it's", "whole"))
    assert parse_request("sh -c 'rm -rf /' look-at-source.sh /srv whole").values == ("/srv", "whole")


def test_a_program_is_taken_as_its_words() -> None:
    asked = Command(argv=("find", "/srv/a b/.", "-printf", r"%P\0"), effect=Effect.READS, host=HOST)
    assert parse_request(sent(asked)) == GateRequest(name="find", values=asked.argv[1:])
    assert parse_request(r"rsync --server --sender -e.L . /srv/a\ b/").values[-1] == "/srv/a b/"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "a login"),
        ("  ", "a login"),
        ("sh -c id", "a shell"),
        ("sh -c id ''", "a shell"),
        ("sh -c id ../x.sh", "a shell"),
        ("sh -c id x.sh/../y.sh", "a shell"),
        ("sh -c x start-rsync.sh 5=/srv -- id", "a program"),
        ("sh -c x start-rsync.sh 5=/srv --", "a program"),
        ("sh -c x start-rsync.sh rsync --server", "a program"),
        ("env", "nothing"),
        ("env LC_ALL=C", "nothing"),
        ("echo 'half", "cannot be read"),
        ("echo \\", "cannot be read"),
    ],
)
def test_what_no_poolferry_sends_is_refused(line: str, said: str) -> None:
    with pytest.raises(GateRefusal, match=said):
        parse_request(line)


def test_settings_of_the_environment_are_never_taken_over() -> None:
    assert parse_request("env LC_ALL=C.UTF-8 LC_ALL=C sync -f /srv").name == "sync"
    for setting in ("LD_PRELOAD=/tmp/x.so", "LC_ALL=x", "-i", "PATH=/tmp"):
        assert parse_request(shlex.join(("env", setting, "sync", "-f", "/srv"))).name == setting


def test_a_line_has_the_words_that_a_shell_sees() -> None:
    """However it is written: as poolferry does, which is taken apart more quickly, or nearly so."""
    chance = random.Random(7)
    signs = " '\"\\\nab$#;\t\udcff-é"
    for _ in range(20_000):
        line = "".join(chance.choices(signs, k=chance.randrange(14)))
        try:
            expected = shlex.split(line)
        except ValueError:
            with pytest.raises(ValueError, match="No "):
                split_line(line)
        else:
            assert split_line(line) == expected, line
        words = ["".join(chance.choices(signs, k=chance.randrange(8))) for _ in range(3)]
        assert split_line(shlex.join(words)) == words

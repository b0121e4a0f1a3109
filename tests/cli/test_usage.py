"""Wrong usage and wrong configurations: exit 2, every mistake at once, never a traceback."""

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import click
import pytest

from orchestrator import __version__, cli
from orchestrator.cli import main
from orchestrator.cli.terminal.options import SECTIONS, CliGroup
from orchestrator.cli.terminal.root import root
from tests.ferry import Ferry

WRONG = [
    (),
    ("nothing",),
    ("run",),
    ("run", "--all", "photos"),
    ("run", "--all", "--due"),
    ("run", "--due", "--dry-run"),
    ("plan",),
    ("plan", "a", "b"),
    ("history", "--limit", "none"),
    ("history", "--limit", "0"),
    ("status", "--nonsense"),
    ("show", "12"),
    ("restore",),
    ("restore", "run", "--to", "/tmp/x"),
    ("restore", "run", "photos", "--from", "/tmp/y", "--to", "/tmp/x"),
    ("restore", "run", "photos"),
    ("restore", "plan", "photos", "--to", "/tmp/x", "--at", "noon"),
    ("restore", "plan", "photos", "--to", "/tmp/x", "--at", "2024-01-01", "--point", "2024"),
    ("restore", "plan", "photos", "--to", "/tmp/x", "--path", "../../etc"),
    ("restore", "plan", "photos", "--to", "ssh://:pass@host/x"),
    ("points", "export", "photos"),
    ("completion", "tcsh"),
    ("config", "schema", "hooks"),
    ("--config", "/dev/null", "check"),
]


@pytest.mark.parametrize("group", [(), ("restore",), ("setup",), ("config",), ("import",), ("fleet",)], ids=" ".join)
def test_a_group_without_a_command_shows_its_commands(
    ferry: Ferry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, group: tuple[str, ...]
) -> None:
    for name, value in ferry.variables().items():
        monkeypatch.setenv(name, value)
    assert main(list(group)) == 2
    told = capsys.readouterr().err
    assert (told.splitlines()[0][:6], "\nCommands:\n" in told, "\\n" in told) == ("Usage:", True, False), told


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage_says_what_is_wrong(
    ferry: Ferry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """In this process, as two dozen starts would tell no more; the next test starts the real one."""
    ferry.job()
    for name, value in ferry.variables().items():
        monkeypatch.setenv(name, value)
    assert main(list(arguments)) == 2
    plain = capsys.readouterr()
    assert plain.out == ""
    assert plain.err
    assert "Traceback" not in plain.err
    assert main(["--json", *arguments]) == 2
    told = capsys.readouterr()
    value = json.loads(told.out)
    assert (value["format"], bool(value["error"])) == (1, True)
    assert "Traceback" not in told.err


def test_wrong_usage_of_the_real_command(ferry: Ferry) -> None:
    ferry.job()
    plain = ferry.run("status", "--nonsense")
    assert (plain.code, plain.out) == (2, "")
    assert plain.err.splitlines() == [
        "Usage: poolferry status [OPTIONS] [JOB]...",
        "poolferry: No such option '--nonsense'.",
        "  what to do: see poolferry status --help",
    ]
    told = ferry.run("status", "--nonsense", "--json")
    assert (told.code, told.value["error"]) == (2, "No such option '--nonsense'.")


def test_every_command_is_found_where_it_is_said_to_be() -> None:
    """In the file of its name, or in the folder for a group; and the help knows where to show it."""
    for module in walk_packages(cli.__path__, f"{cli.__name__}."):
        folders = module.name.split(".")[2:]
        if folders[0] == "terminal":
            continue
        command = import_module(module.name).COMMAND
        assert command.name == folders[-1].rstrip("_").replace("_", "-"), module.name
        assert isinstance(command, CliGroup) is module.ispkg, module.name
        assert (command.section in SECTIONS) is (len(folders) == 1), module.name


def test_help_shows_every_command_by_section(ferry: Ferry) -> None:
    told = ferry.run("--help").out
    shown = re.findall(r"^    ([a-z-]+)  ", told, re.MULTILINE)
    assert sorted(shown) == sorted(root.list_commands(click.Context(root)))
    assert re.findall(r"^  ([a-z -]+):$", told, re.MULTILINE) == [*SECTIONS]


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("hisory",), "did you mean history?"),
        (("restore", "runn"), "did you mean run?"),
        (("xyzzy",), "No such command 'xyzzy'."),
        (("disks", "forget", "blue"), "No such command 'forget'."),
        (("disks", "lots", "blue"), "did you mean lost?"),
    ],
)
def test_a_word_that_is_no_command_names_the_nearest(ferry: Ferry, words: tuple[str, ...], near: str) -> None:
    told = ferry.run(*words)
    assert told.code == 2
    assert near in told.err


def completions(ferry: Ferry, *words: str) -> list[str]:
    """Return what bash is offered for the last of the words."""
    requested = {"COMP_WORDS": " ".join(["poolferry", *words]), "COMP_CWORD": str(len(words))}
    told = ferry.run(_POOLFERRY_COMPLETE="bash_complete", **requested)
    return [line.partition(",")[2] for line in told.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["hist"], ["history"]),
        (["restore", "b"], ["bootstrap"]),
        (["restore", "run", "ph"], ["photos"]),
        (["disks", "en"], ["enroll"]),
        (["points", "ex"], ["export"]),
        (["points", "ph"], ["photos"]),
        (["points", "export", "ph"], ["photos"]),
    ],
)
def test_a_shell_completes_commands_and_jobs(ferry: Ferry, words: list[str], offered: list[str]) -> None:
    ferry.job()
    assert completions(ferry, *words) == offered


def test_without_a_command_the_help_is_shown(ferry: Ferry) -> None:
    assert "Commands:" in ferry.run().err


def test_every_command_has_a_help(ferry: Ferry) -> None:
    for command in "init check plan run status history show points verify restore config completion".split():
        told = ferry.run(command, "--help")
        assert told.code == 0, command
        assert told.out.startswith("Usage: poolferry " + command)
        assert "--config" not in told.out  # the common options are told once


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_goes_to_stdout(ferry: Ferry, flag: str) -> None:
    told = ferry.run(flag)
    assert (told.code, told.err) == (0, "")
    assert "--verbose" in told.out


def test_the_version(ferry: Ferry) -> None:
    assert ferry.run("--version").out == f"poolferry {__version__}\n"
    assert ferry.run("--version", "--json").value == {"format": 1, "version": __version__}


def test_common_options_stand_before_or_after_the_command(ferry: Ferry, tmp_path: Path) -> None:
    ferry.job()
    other = Ferry(tmp_path / "other")
    other.job("music")
    there = ("--config", str(other.config))
    for arguments in [(*there, "--json", "check"), ("check", *there, "--json"), ("--json", "check", *there)]:
        assert [job["job"] for job in ferry.run(*arguments).value["jobs"]] == ["music"]
    ferry.run("run", "photos", "--state", str(tmp_path / "elsewhere"))
    assert (tmp_path / "elsewhere" / "history.sqlite").exists()
    assert not ferry.state.exists()


BROKEN = {
    "jobs/photos.toml": 'engine = "rsync"\nsource = "/srv/photos"\ntarget = "nowhere"\nscedule = "1 2 3 4 5"\n',
    "jobs/music.toml": 'engine = "rsink"\nsource = "relative"\ntarget = "copies"\n',
    "targets.toml": '[place.copies]\npath = "/backup/copies"\n',
}


def test_all_mistakes_of_all_files_at_once(ferry: Ferry) -> None:
    for name, text in BROKEN.items():
        (ferry.config / name).write_text(text)
    plain, told = ferry.run("check"), ferry.run("check", "--json")
    assert plain.code == told.code == 2
    assert plain.out == ""
    mistakes = told.value["mistakes"]
    assert len(mistakes) >= 3
    assert set(mistakes[0]) == {"file", "line", "key", "what", "expected"}
    assert {os.path.basename(each["file"]) for each in mistakes} == {"photos.toml", "music.toml"}
    line = f"{ferry.config}/jobs/photos.toml:4: scedule: unknown key"
    assert line in plain.err
    for each in mistakes:
        assert each["what"] in plain.err


@pytest.mark.parametrize("command", [("status",), ("run", "photos"), ("plan", "photos"), ("verify",), ("points",)])
def test_nothing_runs_on_a_wrong_configuration(ferry: Ferry, command: tuple[str, ...]) -> None:
    for name, text in BROKEN.items():
        (ferry.config / name).write_text(text)
    assert ferry.run(*command).code == 2
    assert not ferry.state.exists()


def test_an_unknown_job_is_a_mistake(ferry: Ferry) -> None:
    ferry.job()
    told = ferry.run("run", "fotos")
    assert told.code == 2
    assert 'no job "fotos"' in told.err
    assert "did you mean photos?" in told.err
    assert "one of photos" in told.err


def test_a_directory_that_is_not_there(ferry: Ferry) -> None:
    told = ferry.run("--config", "/nowhere/at/all", "status", "--json")
    assert told.code == 2
    assert told.value["mistakes"][0]["what"] == "there is no such directory"


def test_an_unexpected_error_is_called_a_mistake_of_ours(ferry: Ferry) -> None:
    broken = "import sys; from orchestrator import compose; compose.read_configuration = lambda where: 1 / 0\n"
    start = broken + "from orchestrator.cli import main; sys.exit(main(sys.argv[1:]))"

    def told(**variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", start, "check"],
            env={**ferry.variables(), **variables},
            capture_output=True,
            text=True,
        )

    plain = told()
    assert plain.returncode == 1
    assert "this is a mistake in poolferry: ZeroDivisionError" in plain.stderr
    assert "POOLFERRY_DEBUG=1" in plain.stderr
    assert "Traceback" not in plain.stderr
    assert "Traceback" in told(POOLFERRY_DEBUG="1").stderr


def test_a_state_that_cannot_be_written_is_told_plainly(ferry: Ferry) -> None:
    ferry.job()
    ferry.state.write_text("in the way\n")
    for command in [("run", "photos"), ("history",), ("status",)]:
        told = ferry.run(*command)
        assert told.code == 1
        assert str(ferry.state) in told.err
        assert "mistake in poolferry" not in told.err
        assert "Traceback" not in told.err


def test_the_history_of_a_job_that_nobody_knows_is_a_mistake(ferry: Ferry) -> None:
    ferry.job()
    told = ferry.run("history", "photso")
    assert (told.code, told.out) == (2, ""), told
    assert "did you mean photos?" in told.err
    assert ferry.run("history", "photos").code == 0
    ferry.run("run", "photos")
    (ferry.config / "jobs" / "photos.toml").rename(ferry.config / "jobs" / "pictures.toml")
    assert ferry.run("history", "photos").out.splitlines()[1].split()[:3] == ["1", "photos", "run"], (
        "a job that was removed"
    )

"""Names of strangers in all that is printed, mailed or kept to be read: no byte of them is obeyed, and none makes a line of its own."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.domain.names import UNSAFE_TEXT
from tests.ferry import COMMAND
from tests.whole.house import House, url

pytestmark = pytest.mark.timeout(300)
FORGED = "what to do: run me"
# What a terminal, a log, a mail, Markdown or a shell may obey, and a second line that looks like one of ours.
EVIL = "e\x1b[31m\x9b2J\r\u202e\u200b\u2028".encode() + b"\xff\n  " + FORGED.encode() + b"\n```sh\ntouch PWNED\n```\n`id`$(touch PWNED)'\";touch PWNED;#"
SHORT = EVIL[:60]


def said(house: House, *arguments: str, as_json: bool = False) -> tuple[bytes, int]:
    """All that a command prints, with its exit code."""
    argv = [*COMMAND, "--config", str(house.config), "--state", str(house.state), *(["--json"] if as_json else []), *arguments]
    done = subprocess.run(argv, env=house.environment, cwd=house.folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
    return done.stdout + b"\n" + done.stderr, done.returncode


def judge(text: bytes, what: object, *, as_json: bool = False) -> None:
    """Fail when the text holds what is obeyed, or a line that a name made."""
    found = text.decode()
    assert not (bad := re.search(UNSAFE_TEXT, found)), (what, bad, found[max(bad.start() - 200, 0) : bad.end() + 50])
    assert as_json or not [line for line in found.split("\n") if line.strip().startswith((FORGED, "touch", "```\\n"))], (what, found)
    assert "Traceback" not in found and "mistake in poolferry" not in found, found


COMMANDS: Sequence[Sequence[str]] = (
    ("check",), ("check", "--system"), ("plan", "photos"), ("plan", "photos", "-v"), ("run", "photos", "-v"), ("run", "photos"), ("status",),
    ("history",), ("show", "last"), ("points", "list", "--look"), ("verify", "photos"), ("verify", "--source", "photos"),
    ("drill", "photos"), ("restore", "plan", "photos", "--to", "/tmp/to"), ("schedule",), ("disks", "list"), ("notices", "list", "--full"),
    ("metrics",), ("kit", "photos"), ("pause", "photos"), ("resume", "photos"), ("setup", "systemd", "--print"), ("completion", "bash"),
)  # fmt: skip


@pytest.fixture
def evil(house: House) -> House:
    """A house with a job whose source and target have such names, as has all that lies in the source."""
    house.source, house.target = (Path(os.fsdecode(os.fsencode(house.folder) + each + EVIL)) for each in (b"/s/", b"/t/"))
    house.source.mkdir(parents=True)
    house.target.parent.mkdir()
    for folder in (b"", SHORT + b"/"):
        house.write(folder + EVIL, "content")
        os.symlink(EVIL, os.fsencode(house.source) + b"/" + folder + b"link" + SHORT)
    house.write(SHORT + b"/.~poolferry-partial~", "one of our names")
    hook = house.config / "hooks" / os.fsdecode(SHORT.replace(b"/", b""))
    house.write(hook, b"#!/bin/sh\nprintf '%b' '" + EVIL.replace(b"'", b"") + b"' >&2\nexit 3\n")
    hook.chmod(0o755)
    house.job(source=url(os.fsencode(house.source)), target=url(os.fsencode(house.target)))
    return house


def damage(house: House) -> None:
    """Change a file of the newest point, without a trace in its size and time."""
    path = os.fsencode(house.point()) + b"/" + EVIL
    before = os.stat(path)
    with open(path, "r+b") as file:
        file.write(b"C")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def loud(house: House, argument: str) -> None:
    """A job whose hooks fail and say such words, and whose notices go to a mail program that keeps them."""
    hook = house.write(house.config / "hooks/loud", b"#!/bin/sh\nprintf '%b' \"$1\" >&2\nenv >> env\nexit 3\n")
    hook.chmod(0o755)
    house.job(
        source=url(os.fsencode(house.source)), target=url(os.fsencode(house.target)),
        hooks={"done": ["loud", argument], "failed": ["loud", argument]}, guard={"max_deleted": 1},
    )  # fmt: skip


def test_no_command_prints_what_is_obeyed(evil: House) -> None:
    for arguments in COMMANDS:
        for as_json in (False, True):
            judge(said(evil, *arguments, as_json=as_json)[0], arguments, as_json=as_json)
    assert not list(evil.folder.rglob("PWNED"))


def test_no_failure_prints_it(evil: House) -> None:
    words = EVIL.decode("utf-8", "surrogateescape")
    evil.run()
    loud(evil, words)
    damage(evil)
    for folder in (b"/points/", b"/", b"/.poolferry/"):
        os.mkdir(os.fsencode(evil.target) + folder + SHORT)
    occupied = evil.folder / "to"
    evil.write(occupied / os.fsdecode(SHORT), "x")
    far = "ssh://" + "u\u202e\x1b" + "@127.0.0.1:1/x"
    commands: list[Sequence[str]] = [
        ("verify", "photos"), ("status",), ("run", "photos"), ("drill", "photos", "--whole"), ("show", "last"), ("history",), ("points",),
        ("restore", "run", "photos", "--to", str(occupied)), ("restore", "run", "photos", "--to", str(occupied / words[:40] / "x")),
        ("restore", "plan", "photos", "--to", str(evil.folder / "n"), "--path", words), ("restore", "run", "photos", words, "--to", "/x"),
        ("restore", "plan", "--from", far, "--to", "/x"), ("restore", "bootstrap", far), ("restore", "bootstrap", words[:60]), ("restore", "bootstrap", str(evil.target)),
        ("run", words), ("show", words), (words,), ("--" + words,), ("status", words), ("points", "export", "photos", "--to", words[:60]),
        ("disks", "enroll", words, "--set", words), ("pause", "photos", "--why", words), ("status",), ("schedule",), ("resume", "photos"), ("run", "photos", "--why", words),
        ("history",), ("show", "last"), ("disks", "show", words), ("notices", "test", words), ("import-syncoid", words[:60]),
    ]  # fmt: skip
    for arguments in commands:
        for as_json in (False, True):
            judge(said(evil, *arguments, as_json=as_json)[0], arguments, as_json=as_json)
    for path in [*evil.source.iterdir()]:
        if path.is_file():
            path.unlink()
    for arguments in (("run", "photos"), ("plan", "photos", "-v"), ("status",), ("show", "last"), ("verify", "photos", "--source")):
        judge(said(evil, *arguments)[0], arguments)
    assert not list(evil.folder.rglob("PWNED"))


def test_no_mistake_of_the_configuration_prints_it(evil: House) -> None:
    words = EVIL.decode("utf-8", "surrogateescape")
    plain = EVIL.decode("utf-8", "ignore")
    jobs = evil.config / "jobs"
    evil.write(os.fsencode(jobs) + b"/" + SHORT.replace(b"/", b"") + b".toml", b"x = 1")
    for number, key in enumerate(("engine", "source", "target", "schedule", "after", "late-after", "every", "priority", plain)):
        evil.write(jobs / f"j{number}.toml", f"{json.dumps(key)} = {json.dumps(plain)}\n[hooks]\nbefore = {json.dumps(plain)}\n[guard]\nmax-deleted = {json.dumps(plain)}\n")
    evil.write(jobs / "raw.toml", b"source = '" + EVIL + b"'")
    evil.write(evil.config / "poolferry.toml", f"[{json.dumps(plain)}]\nx = 1\n[notice.{json.dumps(plain)}]\nkind={json.dumps(plain)}\n")
    for arguments in (("check",), ("run", "photos"), ("status",), ("schedule",), ("daemon",), ("run", words)):
        for as_json in (False, True):
            text, code = said(evil, *arguments, as_json=as_json)
            assert code == 2, text
            judge(text, arguments, as_json=as_json)

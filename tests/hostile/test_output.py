"""Names of strangers in all that is printed, mailed or kept to be read: no byte of them is obeyed, and none makes a line of its own."""

import contextlib
import email
import email.policy
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.names import UNSAFE_TEXT
from orchestrator.engines.sanoid import ENGINE as SANOID
from orchestrator.engines.zfs import ENGINE as ZFS
from tests.engines.sanoid import builders as sanoids
from tests.engines.zfs import sides
from tests.ferry import COMMAND
from tests.hostile.answers import HELD, KIT, LOOK, POOL_SEEN, pins, reader, survey_datasets
from tests.whole.house import House, facts, url

pytestmark = pytest.mark.timeout(300)
FORGED = "what to do: run me"
# What a terminal, a log, a mail, Markdown or a shell may obey, and a second line that looks like one of ours.
EVIL = (
    "e\x1b[31m\x9b2J\r\u202e\u200b\u2028".encode()
    + b"\xff\n  "
    + FORGED.encode()
    + b"\n```sh\ntouch PWNED\n```\n`id`$(touch PWNED)'\";touch PWNED;#"
)
SHORT = EVIL[:60]


def said(house: House, *arguments: str, as_json: bool = False) -> tuple[bytes, int]:
    """All that a command prints, with its exit code."""
    argv = [
        *COMMAND,
        "--config",
        str(house.config),
        "--state",
        str(house.state),
        *(["--json"] if as_json else []),
        *arguments,
    ]
    done = subprocess.run(
        argv,
        env=house.environment,
        cwd=house.folder,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    return done.stdout + b"\n" + done.stderr, done.returncode


def judge(text: bytes, what: object, *, as_json: bool = False) -> None:
    """Fail when the text holds what is obeyed, or a line that a name made."""
    found = text.decode()
    assert not (bad := re.search(UNSAFE_TEXT, found)), (what, bad, found[max(bad.start() - 200, 0) : bad.end() + 50])
    assert as_json or not [
        line for line in found.split("\n") if line.strip().startswith((FORGED, "touch", "```\\n"))
    ], (what, found)
    if as_json and found.strip().startswith("{"):
        lines = [line for line in found.split("\n") if line.startswith("{") and line.endswith("}")]
        for value in lines or [found.partition("\n}\n")[0] + "}"]:  # one value, or one on each line
            json.dumps(json.loads(value), ensure_ascii=False).encode()  # no lone surrogate in it
    assert "Traceback" not in found
    assert "mistake in poolferry" not in found, found


COMMANDS: Sequence[Sequence[str]] = (
    ("check",), ("check", "--system"), ("plan", "photos"), ("plan", "photos", "-v"), ("run", "photos", "-v"), ("run", "photos"), ("status",),
    ("history",), ("show", "last"), ("points", "list", "--look"), ("verify", "photos"), ("verify", "--source", "photos"),
    ("drill", "photos"), ("restore", "plan", "photos", "--to", "/tmp/to"), ("schedule",), ("disks", "list"), ("notices", "list", "--full"),
    ("ls", "photos", "-r"), ("find", "photos", "*"), ("diff", "photos"), ("metrics",), ("kit", "photos"), ("pause", "photos"),
    ("resume", "photos"), ("setup", "systemd", "--print"), ("completion", "bash"),
)  # fmt: skip


@pytest.fixture
def evil(house: House) -> House:
    """A house with a job whose source and target have such names, as has all that lies in the source."""
    house.source, house.target = (
        Path(os.fsdecode(os.fsencode(house.folder) + each + EVIL)) for each in (b"/s/", b"/t/")
    )
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
    hook = house.write(
        house.config / "hooks/loud", f"#!/bin/sh\nprintf '%b' \"$1\" >&2\nenv >> '{house.folder}/env'\nexit 3\n"
    )
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
        ("restore", "plan", "--from", far, "--to", "/x"), ("restore", "bootstrap", far), ("restore", "bootstrap", words[:60]),
        ("restore", "bootstrap", str(evil.target)),
        ("run", words), ("show", words), (words,), ("--" + words,), ("status", words), ("points", "export", "photos", "--to", words[:60]),
        ("disks", "enroll", words, "--set", words), ("pause", "photos", "--why", words), ("status",), ("schedule",), ("resume", "photos"),
        ("run", "photos", "--why", words),
        ("history",), ("show", "last"), ("disks", "show", words), ("notices", "test", words), ("import-syncoid", words[:60]),
    ]  # fmt: skip
    for arguments in commands:
        for as_json in (False, True):
            judge(said(evil, *arguments, as_json=as_json)[0], arguments, as_json=as_json)
    for path in [*evil.source.iterdir()]:
        if path.is_file():
            path.unlink()
    for arguments in (
        ("run", "photos"),
        ("plan", "photos", "-v"),
        ("status",),
        ("show", "last"),
        ("verify", "photos", "--source"),
    ):
        judge(said(evil, *arguments)[0], arguments)
    assert not list(evil.folder.rglob("PWNED"))


def test_no_mistake_of_the_configuration_prints_it(evil: House) -> None:
    words = EVIL.decode("utf-8", "surrogateescape")
    plain = EVIL.decode("utf-8", "ignore")
    jobs = evil.config / "jobs"
    evil.write(os.fsencode(jobs) + b"/" + SHORT.replace(b"/", b"") + b".toml", b"x = 1")
    for number, key in enumerate(
        ("engine", "source", "target", "schedule", "after", "late-after", "every", "priority", plain)
    ):
        evil.write(
            jobs / f"j{number}.toml",
            f"{json.dumps(key)} = {json.dumps(plain)}\n[hooks]\nbefore = {json.dumps(plain)}\n[guard]\nmax-deleted = {json.dumps(plain)}\n",
        )
    evil.write(jobs / "raw.toml", b"source = '" + EVIL + b"'")
    evil.write(
        evil.config / "poolferry.toml",
        f"[{json.dumps(plain)}]\nx = 1\n[notice.{json.dumps(plain)}]\nkind={json.dumps(plain)}\n",
    )
    for arguments in (("check",), ("run", "photos"), ("status",), ("schedule",), ("daemon",), ("run", words)):
        for as_json in (False, True):
            text, code = said(evil, *arguments, as_json=as_json)
            assert code == 2, text
            judge(text, arguments, as_json=as_json)


def test_the_page_beside_a_copy_is_what_it_looks_like(evil: House) -> None:
    """Its commands are pasted: they do what stands there, and nothing that a name says."""
    assert evil.run().outcome == "done"
    page = (evil.target / ".poolferry/RECOVERY.md").read_bytes()
    judge(page, "RECOVERY.md")
    blocks = "".join(block.partition("\n```")[0] + "\n" for block in page.decode().split("\n```sh\n")[1:])
    before = facts(evil.point())
    shutil.rmtree(evil.source)
    done = subprocess.run(["sh", "-e", "-c", blocks], cwd=evil.folder, capture_output=True, check=False)
    assert done.returncode == 0, done
    assert facts(evil.source) == before
    inside = [words for words in re.findall("(`+) (poolferry .*?) \\1 ", page.decode()) if "--from" in words[1]]
    command = (
        inside[0][1]
        .replace("poolferry", f"{sys.executable} -m orchestrator --state {evil.state}", 1)
        .replace("FOLDER", "back")
    )
    done = subprocess.run(
        ["bash", "-c", command], cwd=evil.folder, env=evil.environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done
    assert facts(evil.folder / "back") == before
    assert not list(evil.folder.rglob("PWNED"))


def test_no_mail_carries_it(evil: House) -> None:
    """A header that a name ends, or a line that looks like ours."""
    bin_folder = evil.folder / "bin"
    mailer = evil.write(bin_folder / "sendmail", f"#!/bin/sh\ncat >> {evil.folder}/mails\n")
    mailer.chmod(0o755)
    evil.environment = {**evil.environment, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    evil.write(evil.config / "poolferry.toml", '[notice.me]\nkind = "mail"\nto = ["me@example.org"]\n')
    evil.run()
    damage(evil)
    assert evil.call("verify", "photos").code == 1
    judge(said(evil, "notices", "send")[0], "notices send")
    mails = (evil.folder / "mails").read_bytes()
    letter = email.message_from_bytes(mails, policy=email.policy.default)
    judge(mails.replace(b"\r", b""), "the mail")
    judge(letter.get_content().encode(), "its text")
    assert letter["Subject"].startswith("poolferry on ")
    assert "photos" in letter["Subject"]
    assert not {name.lower() for name in letter} - {
        "from", "to", "subject", "date", "message-id", "auto-submitted", "x-poolferry", "content-type", "content-transfer-encoding", "mime-version",
    }  # fmt: skip


def test_no_hook_is_told_it(evil: House) -> None:
    """A hook's own words go to a terminal or a log as they are. Paths it may need: they are as they are, on one line."""
    evil.run()
    damage(evil)
    loud(evil, "x")
    evil.write("w/new", "x")
    assert evil.call("verify", "photos").code == 1
    evil.run()
    env = (evil.folder / "env").read_bytes().split(b"\n")
    told = [line for line in env if line.startswith(b"POOLFERRY_")]
    for line in told:
        if line.startswith((b"POOLFERRY_SOURCE=", b"POOLFERRY_TARGET=")):
            assert line.endswith(EVIL.replace(b"\n", b" "))
        else:
            judge(line, "a hook's environment")
    assert any(line.startswith(b"POOLFERRY_WHY=") for line in told)


@pytest.mark.parametrize(
    "name", [b"x;touch PWNED", b"`id`", b"$(id)", b"x\x1b[31m", "x\u202e".encode(), b"x\xff", b"'x'", b"x\\y"]
)
@pytest.mark.parametrize(
    ("said_by_a_host", "read"),
    [
        (LOOK.replace(b"tank/photos/in\t", b"tank/photos/NAME\t"), survey_datasets), (LOOK.replace(b"photos@a\t", b"photos@NAME\t"), survey_datasets),
        (LOOK.replace(b"photos#kept\t", b"photos#NAME\t"), survey_datasets), (LOOK.replace(b"vault\t99", b"NAME\t99"), survey_datasets),
        (KIT.replace(b"tank@a\t", b"tank@NAME\t"), lambda said: ZFS.survey_kit(sides.job(), sides.NOW, reader(said))),
        (HELD.replace(b"photos@a", b"photos@NAME"), pins), (b"tank/photos@NAME\t1700000000\n", lambda said: ZFS.points(sides.job(), reader(said))),
        (b"1700000000\ntank/photos\t7\t-\ntank/photos/NAME\t8\t-\n\n", lambda said: SANOID.survey(sanoids.job(), sanoids.ASKED, reader(said))),
        (POOL_SEEN.replace(b"t\tfilesystem", b"t/NAME\tfilesystem"), lambda said: ZFS.survey_pool("tank", reader(said))),
    ],
)  # fmt: skip
def test_no_dataset_is_named_what_zfs_allows_no_name(
    name: bytes, said_by_a_host: bytes, read: Callable[[bytes], object]
) -> None:
    """Such names come into hints and pages, whose commands people paste."""
    assert b"NAME" in said_by_a_host
    found: object = None
    with contextlib.suppress(OrchestratorError):
        found = read(said_by_a_host.replace(b"NAME", name))
    assert name.decode("utf-8", "surrogateescape") not in str(found)


def test_a_dataset_that_is_not_below_the_source_is_no_answer() -> None:
    with pytest.raises(OrchestratorError, match="not at or below tank/photos"):
        survey_datasets(LOOK.replace(b"tank/photos/in\t", b"tank/other/in\t"))


def test_the_page_of_datasets_writes_nothing_where_all_may_write() -> None:
    """Root pastes it: under a name in /tmp anybody may have laid a link, or goes on writing."""
    page = ZFS.survey_kit(sides.job(), sides.NOW, reader(KIT)).recovery
    assert ">/root/" in page
    assert "/tmp" not in page


def test_the_page_of_datasets_shows_nothing_that_a_host_answered_as_it_is() -> None:
    evil = KIT.replace(b"/dev/sda1", b"/dev/\x1b[31m\xe2\x80\xae`id`;x$(id)")
    judge(
        ZFS.survey_kit(sides.job(), sides.NOW, reader(evil)).recovery.encode("utf-8", "surrogateescape"), "RECOVERY.md"
    )

"""mail: what arrives at a real mail server and at the machine's sendmail."""

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers import MailServer, debian_mail, read, serving

EVIL = 'it\'s "bad"\r\nBcc: thief@example.org\r\n\r\n.\r\nQUIT\x1b[2J'


@pytest.fixture
def server() -> Iterator[MailServer]:
    """A mail server without TLS."""
    with serving() as peer:
        yield peer


def test_a_failure_is_told_with_why_numbers_cure_and_warnings(hook: Any, server: MailServer) -> None:
    more = {"hint": "free some space", "warnings": ["3 files changed\nwhile read"], "points": []}
    report = json.dumps({"event": "failed", "report": more})
    facts = {"why": "no space left", "source": "/srv/photos", "target": "backup"}
    facts |= {"moved_bytes": "2048", "seconds": "75"}
    end = hook("mail", "a@example.org", "b@example.org", "--from", "nas@example.org", "--smtp", server.address,
               event="failed", report=report, **facts)  # fmt: skip
    assert (end.returncode, end.stderr) == (0, "")
    ((sender, to, raw),) = server.letters
    assert (sender, to) == ("nas@example.org", ["a@example.org", "b@example.org"])
    letter = read(raw)
    assert letter["Subject"] == "[poolferry] photos: failed: no space left"
    assert (letter["To"], letter["Auto-Submitted"]) == ("a@example.org, b@example.org", "auto-generated")
    assert letter["Date"] is not None
    assert letter["Message-ID"] is not None
    lines = letter.get_content().splitlines()
    table = ["Job      photos", "Event    failed", "Why      no space left", "Source   /srv/photos", "Run      17"]
    table += ["Moved    2.0 KiB", "Took     1 min 15 s", "Warning  3 files changed while read", "free some space"]
    assert [line for line in table if line not in lines] == []
    assert "`poolferry show 17`" in letter.get_content()


@pytest.mark.parametrize(
    "report", ["", "no json", "[1]", "{}", '{"report": null}', '{"report": {"warnings": 7, "hint": null}}']
)
def test_a_report_that_is_not_as_promised_stops_no_mail(hook: Any, server: MailServer, report: str) -> None:
    end = hook("mail", "a@example.org", "--smtp", server.address, event="done", report=report)
    assert (end.returncode, end.stderr, len(server.letters)) == (0, "", 1)


def test_newlines_and_quotes_forge_neither_header_nor_end(hook: Any, server: MailServer) -> None:
    report = json.dumps({"report": {"hint": EVIL, "warnings": [EVIL, "\ud800\udcff"]}})
    end = hook("mail", "a@example.org", "--smtp", server.address, event="failed", report=report,
               job=EVIL, why=EVIL, source=EVIL)  # fmt: skip
    assert (end.returncode, end.stderr) == (0, "")
    ((_, to, raw),) = server.letters
    letter = read(raw)
    assert (to, letter["Bcc"], letter.defects) == (["a@example.org"], None, [])
    assert letter["Subject"].startswith('[poolferry] it\'s "bad" Bcc: thief@example.org . QUIT')
    assert "\x1b" not in letter.get_content()
    assert not [line for line in letter.get_content().splitlines() if line.startswith(("Bcc", ".", "QUIT"))]


def test_names_that_are_not_ascii_or_not_even_text_arrive(hook: Any, server: MailServer) -> None:
    hook("mail", "a@example.org", "--smtp", server.address, event="done", job="Müllers Bilder", why="caf\udce9 " * 3)
    raw = server.letters[0][2]
    assert raw.isascii()
    letter = read(raw)
    assert letter["Subject"].startswith("[poolferry] Müllers Bilder: done: caf\N{REPLACEMENT CHARACTER}")
    assert "Müllers Bilder" in letter.get_content()


def test_a_refused_reader_is_told_the_others_get_it(hook: Any, server: MailServer) -> None:
    server.refuses = "gone@"
    end = hook("mail", "gone@example.org", "a@example.org", "--smtp", server.address, event="done")
    assert (end.returncode, server.letters[0][1]) == (1, ["a@example.org"])
    assert "refused for gone@example.org" in end.stderr


def test_no_server_is_an_error_but_stops_no_run_from_beginning(hook: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    after, before = (hook("mail", "a@example.org", "--smtp", nobody, event=event) for event in ("done", "before"))
    assert (after.returncode, before.returncode) == (1, 0)
    assert "Connection refused" in after.stderr


def test_a_server_that_hangs_ends_the_hook_in_time(hook: Any, server: MailServer) -> None:
    server.hangs = True
    end = hook("mail", "a@example.org", "--smtp", server.address, "--timeout", "1", event="done")
    assert end.returncode == 1
    assert "timed out" in end.stderr


@pytest.fixture
def trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for localhost that the hook trusts (OpenSSL reads SSL_CERT_FILE)."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def test_a_password_travels_from_its_file_through_tls_only(hook: Any, trust: ssl.SSLContext, tmp_path: Path) -> None:
    (tmp_path / "mail-password").write_text("s3cret\n")
    login = ("--user", "nas", "--password-file", "mail-password")
    with serving(trust) as server:
        argv = ("mail", "a@example.org", "--smtp", server.address, *login)
        bare = hook(*argv, event="done", credentials=tmp_path)
        assert (bare.returncode, server.logins) == (2, [])
        end = hook(*argv, "--starttls", event="done", credentials=tmp_path)
        assert (end.returncode, end.stderr, len(server.letters)) == (0, "", 1)
        assert server.logins == [("\0nas\0s3cret", True)]


def test_tls_from_the_first_byte(hook: Any, trust: ssl.SSLContext) -> None:
    with serving(trust) as server:
        server.at_once = True
        end = hook("mail", "a@example.org", "--smtp", server.address, "--tls", event="done")
        assert (end.returncode, end.stderr, len(server.letters)) == (0, "", 1)


def test_a_server_with_a_foreign_certificate_gets_nothing(
    hook: Any, trust: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with serving(trust) as server:
        end = hook("mail", "a@example.org", "--smtp", server.address, "--starttls", event="done")
        assert (end.returncode, server.letters) == (1, [])
    assert "CERTIFICATE_VERIFY_FAILED" in end.stderr


def test_a_server_without_starttls_gets_nothing(hook: Any, server: MailServer) -> None:
    end = hook("mail", "a@example.org", "--smtp", server.address, "--starttls", event="done")
    assert (end.returncode, server.letters) == (1, [])


SENDMAIL = """#!/bin/sh
# Takes a mail as sendmail does: options, "--", readers; the mail on stdin.
for argument; do printf '%s\\n' "$argument"; done >"$0.argv"
cat >"$0.letter"
[ ! -e "$0.sick" ] || { echo 'queue is full' >&2; exit 75; }
"""


def test_the_machines_sendmail_gets_readers_and_letter(hook: Any, tmp_path: Path) -> None:
    program = tmp_path / "sendmail"
    program.write_text(SENDMAIL)
    program.chmod(0o755)
    argv = ("mail", "a@example.org", "--from", "nas@example.org", "--sendmail", str(program))
    assert hook(*argv, event="disk-safe", disk="red").returncode == 0
    given = (tmp_path / "sendmail.argv").read_text().split()
    assert given == ["-i", "-f", "nas@example.org", "--", "a@example.org"]
    letter = read((tmp_path / "sendmail.letter").read_bytes())
    assert letter["Subject"] == "[poolferry] photos: disk safe"
    assert "The disk can be unplugged" in letter.get_content()
    (tmp_path / "sendmail.sick").touch()
    sick = hook(*argv, event="done")
    assert (sick.returncode, sick.stderr) == (1, f"not delivered: {program}: exit 75: queue is full\n")


@pytest.fixture
def exim(server: MailServer) -> Iterator[Path]:
    """Debian's own mail system, exim, as a sendmail that carries everything to the server at once."""
    with debian_mail(server) as sendmail:
        if sendmail is None:
            pytest.skip("needs root and Debian's mail system, exim4")
        yield sendmail


@pytest.mark.slow
def test_debians_own_mail_system_carries_it_to_a_server(hook: Any, server: MailServer, exim: Path) -> None:
    end = hook("mail", "a@example.org", "--sendmail", str(exim), event="failed", why=EVIL, job="Müllers")
    logs = "".join(path.read_text() for path in exim.parent.glob("*log"))
    assert (end.returncode, len(server.letters)) == (0, 1), logs + end.stderr
    ((_, to, raw),) = server.letters
    letter = read(raw)
    assert letter["Subject"].startswith('[poolferry] Müllers: failed: it\'s "bad" Bcc: thief')
    assert (to, letter["Bcc"]) == (["a@example.org"], None)


@pytest.mark.parametrize("argv", [(), ("a@example.org", "--starttls"), ("a@example.org", "--smtp", "h", "--user", "x")])
def test_wrong_usage_is_2(hook: Any, argv: tuple[str, ...]) -> None:
    end = hook("mail", *argv, event="done")
    assert end.returncode == 2
    assert "usage: mail" in end.stderr

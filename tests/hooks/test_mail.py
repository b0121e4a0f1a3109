"""mail: what arrives at a real mail server and at the machine's sendmail. Changes things."""

import base64
import contextlib
import email.policy
import json
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest

EVIL = 'it\'s "bad"\r\nBcc: thief@example.org\r\n\r\n.\r\nQUIT\x1b[2J'


class MailServer(socketserver.ThreadingTCPServer):
    """A small real SMTP server on loopback (RFC 5321, 3207, 4954): keeps what it is given; can refuse and hang."""

    daemon_threads = False
    allow_reuse_address = True

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.trust, self.at_once, self.hangs, self.refuses = trust, False, False, ""
        self.letters: list[tuple[str, list[str], bytes]] = []
        self.logins: list[tuple[str, bool]] = []
        self.over = threading.Event()
        self.address = f"localhost:{self.server_address[1]}"


class Conversation(socketserver.StreamRequestHandler):
    """One connection."""

    server: MailServer

    def finish(self) -> None:
        super().finish()
        self.request.close()  # the socket below TLS is no longer the one the server knows

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def handle(self) -> None:
        if self.server.hangs:
            self.server.over.wait(60)
            return
        with contextlib.suppress(OSError):
            if self.server.trust and self.server.at_once:
                self.encrypt(self.server.trust)
            self.say("220 peer ready")
            self.converse()

    def encrypt(self, trust: ssl.SSLContext) -> None:
        """Go on below TLS."""
        self.request = trust.wrap_socket(self.request, server_side=True)
        self.rfile, self.wfile = self.request.makefile("rb"), self.request.makefile("wb", 0)

    def converse(self) -> None:
        """Answer line by line until the caller leaves."""
        secure, sender, to = False, "", list[str]()
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            match line.upper().split()[0]:
                case "EHLO":
                    self.say("250-peer\r\n250-AUTH PLAIN\r\n250 STARTTLS" if self.server.trust else "250 peer")
                case "STARTTLS" if self.server.trust:
                    self.say("220 go ahead")
                    self.encrypt(self.server.trust)
                    secure = True
                case "AUTH":
                    self.server.logins.append((base64.b64decode(line.split()[2]).decode(), secure))
                    self.say("235 welcome")
                case "MAIL":
                    sender, to = line.partition("<")[2].partition(">")[0], []
                    self.say("250 ok")
                case "RCPT" if self.server.refuses and self.server.refuses in line:
                    self.say("550 nobody of that name")
                case "RCPT":
                    to.append(line.partition("<")[2].partition(">")[0])
                    self.say("250 ok")
                case "DATA":
                    self.say("354 end with a dot")
                    self.server.letters.append((sender, to, self.letter()))
                    self.say("250 taken")
                case "QUIT":
                    self.say("221 bye")
                    return
                case _:
                    self.say("250 ok" if line.upper() == "RSET" else "502 unknown")

    def letter(self) -> bytes:
        """The mail up to its lonely dot, the doubled dots undone."""
        lines = list(iter(self.rfile.readline, b".\r\n"))
        return b"".join(line[1:] if line.startswith(b".") else line for line in lines)


@contextlib.contextmanager
def serving(trust: ssl.SSLContext | None = None) -> Iterator[MailServer]:
    """A mail server that runs, and is ended."""
    with MailServer(trust) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def server() -> Iterator[MailServer]:
    """A mail server without TLS."""
    with serving() as peer:
        yield peer


def read(letter: bytes) -> EmailMessage:
    """The mail as its reader sees it."""
    return BytesParser(EmailMessage, policy=email.policy.default).parsebytes(letter)


def test_a_failure_is_told_with_why_numbers_cure_and_warnings(hook: Any, server: MailServer) -> None:
    more = {"cure": "free some space", "warnings": ["3 files changed\nwhile read"], "points": []}
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
    "report", ["", "no json", "[1]", "{}", '{"report": null}', '{"report": {"warnings": 7, "cure": null}}']
)
def test_a_report_that_is_not_as_promised_stops_no_mail(hook: Any, server: MailServer, report: str) -> None:
    end = hook("mail", "a@example.org", "--smtp", server.address, event="done", report=report)
    assert (end.returncode, end.stderr, len(server.letters)) == (0, "", 1)


def test_newlines_and_quotes_forge_neither_header_nor_end(hook: Any, server: MailServer) -> None:
    report = json.dumps({"report": {"cure": EVIL, "warnings": [EVIL, "\ud800\udcff"]}})
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


EXIM = """
spool_directory = {here}/spool
log_file_path = {here}/%slog
primary_hostname = here.example.org
keep_environment =
begin routers
all:
  driver = manualroute
  route_list = * 127.0.0.1
  self = send
  transport = peer
begin transports
peer:
  driver = smtp
  port = {port}
"""


@pytest.fixture
def exim(server: MailServer) -> Iterator[Path]:
    """Debian's own mail system, exim, as a sendmail that carries everything to the server at once."""
    found = shutil.which("exim4", path="/usr/sbin")
    if os.geteuid() or not found:
        pytest.skip("needs root and Debian's mail system, exim4")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        here = Path(name)
        (here / "exim.conf").write_text(EXIM.format(here=here, port=server.server_address[1]))
        (here / "sendmail").write_text(f'#!/bin/sh\nexec {found} -C {here}/exim.conf -odf "$@"\n')
        (here / "sendmail").chmod(0o755)
        shutil.chown(here, "Debian-exim")  # exim drops root when it is told its configuration
        yield here / "sendmail"


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

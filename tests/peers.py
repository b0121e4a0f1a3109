"""Real peers on loopback for what poolferry tells people: a mail server and a web server that fail, hang and recover."""

import base64
import contextlib
import email.policy
import os
import shutil
import socketserver
import ssl
import tempfile
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class WebPeer:
    """A real HTTP server on loopback. `answers`: for each request in turn a status, "hang" or "dribble"; then 200.

    `spared`: the end of a path whose requests get 200 and take none of them, as they come only while a run is slow.
    """

    def __init__(self) -> None:
        self.answers: list[int | str] = []
        self.spared: str | None = None
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        self.over = threading.Event()
        peer = self

        class RequestHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                peer.requests.append((self.command, self.path, dict(self.headers), body))
                with contextlib.suppress(OSError):  # a caller that gave up
                    spared = peer.spared is not None and self.path.endswith(peer.spared)
                    peer.answer(self, peer.answers.pop(0) if peer.answers and not spared else 200)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), RequestHandler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def answer(self, session: BaseHTTPRequestHandler, answer: int | str) -> None:
        """Give the answer, or never, or too slowly."""
        if answer == "hang":
            self.over.wait(60)
            return
        if answer == "dribble":
            while not self.over.wait(0.2):
                session.wfile.write(b"H")
            return
        session.send_response(int(answer))
        if int(answer) in (301, 302, 307):
            session.send_header("Location", f"{self.url}/elsewhere")
        session.send_header("Content-Length", "0")
        session.end_headers()

    def close(self) -> None:
        """End every thread."""
        self.over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


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


def read(letter: bytes) -> EmailMessage:
    """The mail as its reader sees it."""
    return BytesParser(EmailMessage, policy=email.policy.default).parsebytes(letter)


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


@contextlib.contextmanager
def debian_mail(server: MailServer) -> Iterator[Path | None]:
    """Debian's own mail system, exim, as a sendmail that carries everything to the server at once; None: it is not here."""
    found = shutil.which("exim4", path="/usr/sbin")
    if os.geteuid() or not found:
        yield None
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        here = Path(name)
        (here / "exim.conf").write_text(EXIM.format(here=here, port=server.server_address[1]))
        (here / "sendmail").write_text(f'#!/bin/sh\nexec {found} -C {here}/exim.conf -odf "$@"\n')
        (here / "sendmail").chmod(0o755)
        shutil.chown(here, "Debian-exim")  # exim drops root when it is told its configuration
        yield here / "sendmail"

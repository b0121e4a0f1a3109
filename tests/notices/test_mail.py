"""Mail: what arrives at a real mail server and at the machine's sendmail, and what never leaves."""

import socket
import ssl
import time
from pathlib import Path

import pytest

from orchestrator.domain.notice import DeliveryFailed, MailChannel
from orchestrator.notices.send import send_message
from orchestrator.notices.transport import SenderContext
from tests.notices.conftest import EVIL, message
from tests.peers import MailServer, debian_mail, read, serving

SENDMAIL = """#!/bin/sh
for argument; do printf '%s\\n' "$argument"; done >"$0.argv"
cat >"$0.letter"
[ ! -e "$0.hangs" ] || exec sleep 60
[ ! -e "$0.sick" ] || { echo 'queue is full' >&2; exit 75; }
"""


def mail(server: MailServer, security: str = "none", **more: str | tuple[str, ...]) -> MailChannel:
    told = {"name": "me", "to": ("a@example.org",), "smtp": server.address, "security": security, **more}
    return MailChannel(**told)  # type: ignore[arg-type]


def test_a_mail_says_who_what_and_when(server: MailServer, means: SenderContext) -> None:
    send_message(mail(server, to=("a@example.org", "b@example.org"), sender="nas@example.org"), message(), means)
    ((sender, to, raw),) = server.letters
    assert (sender, to) == ("nas@example.org", ["a@example.org", "b@example.org"])
    letter = read(raw)
    assert letter["Subject"] == "photos is late"
    assert letter["Date"] == "Fri, 20 Nov 2026 12:00:00 +0000"
    assert (letter["Auto-Submitted"], letter["X-Poolferry"]) == ("auto-generated", "trouble")
    assert letter["Message-ID"].endswith("@nas.example.org>")
    assert letter.get_content().splitlines() == ["photos in backup: late", "  why"]


def test_without_a_sender_it_is_the_machine(server: MailServer, means: SenderContext) -> None:
    send_message(mail(server), message(), means)
    assert server.letters[0][0] == "poolferry@nas.example.org"


def test_names_forge_neither_header_nor_end(server: MailServer, means: SenderContext) -> None:
    send_message(mail(server), message(subject=EVIL, body=f"{EVIL}\ncaf\udce9\n"), means)
    ((_, to, raw),) = server.letters
    letter = read(raw)
    assert (to, letter["Bcc"], letter.defects) == (["a@example.org"], None, [])
    assert letter["Subject"] == 'it\'s "bad" Bcc: thief@example.org . QUIT [2J'
    assert "\x1b" not in letter.get_content()
    assert "caf\N{REPLACEMENT CHARACTER}" in letter.get_content()


def test_a_refused_reader_is_told_the_others_get_it(server: MailServer, means: SenderContext) -> None:
    server.refuses = "gone@"
    with pytest.raises(DeliveryFailed, match=r"refused for gone@example.org; the others have it"):
        send_message(mail(server, to=("gone@example.org", "a@example.org")), message(), means)
    assert server.letters[0][1] == ["a@example.org"]


def test_nobody_at_the_port_is_told(means: SenderContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(DeliveryFailed, match=f"127.0.0.1:{port}: .*refused"):
        send_message(MailChannel(to=("a",), smtp=f"127.0.0.1:{port}", security="none"), message(), means)


def test_a_server_that_hangs_is_left_in_time(server: MailServer, means: SenderContext) -> None:
    server.hangs = True
    begun = time.monotonic()
    with pytest.raises(DeliveryFailed, match=r"timed out|gave up"):
        send_message(mail(server), message(), means)
    assert time.monotonic() - begun < 5


def test_a_server_without_starttls_gets_nothing(server: MailServer, means: SenderContext) -> None:
    with pytest.raises(DeliveryFailed, match="STARTTLS"):
        send_message(mail(server, "starttls"), message(), means)
    assert server.letters == []


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_password_travels_from_its_file_through_tls(
    trust: ssl.SSLContext, patient: SenderContext, tmp_path: Path, security: str
) -> None:
    (tmp_path / "mail-password").write_text("s3cret\n")
    with serving(trust) as server:
        server.at_once = security == "tls"
        send_message(mail(server, security, user="nas", password_file="mail-password"), message(), patient)  # noqa: S106
        assert [login for login, _ in server.logins] == ["\0nas\0s3cret"]
        assert len(server.letters) == 1


def test_a_server_with_a_foreign_certificate_gets_nothing(
    trust: ssl.SSLContext, patient: SenderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with serving(trust) as server:
        with pytest.raises(DeliveryFailed, match="CERTIFICATE_VERIFY_FAILED"):
            send_message(mail(server, "starttls"), message(), patient)
        assert server.letters == []


def test_a_missing_password_is_told_and_nothing_is_sent(trust: ssl.SSLContext, patient: SenderContext) -> None:
    with serving(trust) as server:
        with pytest.raises(DeliveryFailed, match="the secret absent cannot be read: there is no such file"):
            send_message(mail(server, "starttls", user="nas", password_file="absent"), message(), patient)  # noqa: S106
        assert server.letters == []


@pytest.fixture
def sendmail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's sendmail, first on PATH."""
    program = tmp_path / "bin" / "sendmail"
    program.parent.mkdir()
    program.write_text(SENDMAIL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def test_the_machines_sendmail_gets_readers_and_letter(sendmail: Path, patient: SenderContext) -> None:
    send_message(MailChannel(to=("a@example.org", "root"), sender="nas@example.org"), message(), patient)
    given = sendmail.with_name("sendmail.argv").read_text().split()
    assert given == ["-i", "-f", "nas@example.org", "--", "a@example.org", "root"]
    assert read(sendmail.with_name("sendmail.letter").read_bytes())["Subject"] == "photos is late"
    assert list(sendmail.parent.parent.glob("poolferry-mail-*")) == []


def test_a_sendmail_that_refuses_is_told_in_its_words(sendmail: Path, patient: SenderContext) -> None:
    sendmail.with_name("sendmail.sick").touch()
    with pytest.raises(DeliveryFailed, match="sendmail: exit 75: queue is full"):
        send_message(MailChannel(to=("root",)), message(), patient)


def test_a_sendmail_that_hangs_is_ended(sendmail: Path, means: SenderContext) -> None:
    sendmail.with_name("sendmail.hangs").touch()
    begun = time.monotonic()
    with pytest.raises(DeliveryFailed, match=r"took too long|gave up"):
        send_message(MailChannel(to=("root",)), message(), means)
    assert time.monotonic() - begun < 5


@pytest.mark.slow
def test_debians_own_mail_system_carries_it_to_a_server(
    server: MailServer, patient: SenderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with debian_mail(server) as exim:
        if exim is None:
            pytest.skip("needs root and Debian's mail system, exim4")
        monkeypatch.setenv("PATH", f"{exim.parent}:/usr/bin:/bin")
        send_message(MailChannel(to=("a@example.org",), sender="nas@example.org"), message(subject=EVIL), patient)
        logs = "".join(path.read_text() for path in exim.parent.glob("*log"))
        assert [to for _, to, _ in server.letters] == [["a@example.org"]], logs
    assert read(server.letters[0][2])["Subject"].startswith('it\'s "bad" Bcc: thief')


def test_a_machine_without_sendmail_is_told_the_cure(
    tmp_path: Path, patient: SenderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.process.pipeline.SYSTEM_PATH", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeliveryFailed, match="this machine has no sendmail: install a mail system, or set smtp"):
        send_message(MailChannel(to=("root",)), message(), patient)

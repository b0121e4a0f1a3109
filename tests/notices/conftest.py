"""Fixtures of the senders' tests: peers on loopback, and means of an impatient machine."""

import json
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.notice import Message, NoticeType
from orchestrator.domain.units import Seconds
from orchestrator.notices.transport import SenderContext

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
EVIL = 'it\'s "bad"\r\nBcc: thief@example.org\r\n\r\n.\r\nQUIT\x1b[2J'


def message(
    kind: NoticeType = NoticeType.TROUBLE, about: str = "photos", subject: str = "photos is late", body: str = ""
) -> Message:
    return Message(
        kind=kind, about=about, made_at=NOON, subject=subject, body=body or "photos in backup: late\n  why\n",
        facts=json.dumps({"format": 1, "kind": kind.value}),
    )  # fmt: skip


@pytest.fixture
def means(tmp_path: Path) -> SenderContext:
    """Secrets lie in tmp_path; nobody is waited for longer than a second."""
    return SenderContext(host="nas.example.org", secrets=(str(tmp_path),), within=Seconds(1))


@pytest.fixture
def patient(tmp_path: Path) -> SenderContext:
    """The same, for what starts programs or speaks TLS."""
    return SenderContext(host="nas.example.org", secrets=(str(tmp_path),), within=Seconds(20))


@pytest.fixture
def trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for localhost that we trust (OpenSSL reads SSL_CERT_FILE)."""
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

"""Test what channels need beside their table: secrets that can be read, and nobody else's eyes on them."""

import os
from pathlib import Path

import pytest

from orchestrator.app import notify_check as credentials
from orchestrator.app.notify_check import check_channels
from orchestrator.domain.notice import AppriseChannel, Channel, MailChannel, NtfyChannel, PingChannel, WebhookChannel
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.notices.transport import SenderContext

FILE = "token"
NTFY = NtfyChannel(name="phone", topic="https://ntfy.example.org/x", token_file=FILE)


def advice(folder: Path, channel: Channel, *units: str) -> tuple[SystemCheckResult, ...]:
    return check_channels((channel,), SenderContext(host="here", secrets=(os.fspath(folder),)), units)


def kept(folder: Path, text: str = "tk_1\n", mode: int = 0o600) -> Path:
    file = folder / "token"
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.mark.parametrize(
    ("text", "mode", "good", "hinders", "says"),
    [
        ("tk_1\n", 0o600, True, True, "its secret lies at "),
        ("tk_1\n", 0o640, True, True, "mode 0640"),
        ("tk_1\n", 0o604, False, False, "everybody on this machine may read its secret: chmod 600 "),
        ("tk_1\n", 0o602, False, False, "everybody on this machine may read its secret: chmod 600 "),
        ("\n", 0o600, False, True, "its first line is empty or not plain ASCII"),
        ("", 0o600, False, True, "its first line is empty"),
    ],
)
def test_a_secret_is_read_and_its_mode_looked_at(
    tmp_path: Path, text: str, mode: int, good: bool, hinders: bool, says: str
) -> None:
    kept(tmp_path, text, mode)
    (told,) = advice(tmp_path, NTFY)
    assert (told.subject, told.good, told.hinders or told.good) == ("notice phone", good, hinders)
    assert says in told.text


@pytest.mark.parametrize(
    "channel",
    [
        NTFY,
        WebhookChannel(name="w", url="@token"),
        PingChannel(name="p", url="@token"),
        MailChannel(name="m", to=("me",), smtp="mail.example.org:587", password_file=FILE),
        NtfyChannel(name="n", topic="@token"),
    ],
    ids=lambda channel: type(channel).__name__,
)
def test_every_place_of_a_secret_is_looked_into(tmp_path: Path, channel: Channel) -> None:
    (missing,) = advice(tmp_path, channel)
    assert "its secret token is missing in " in missing.text
    kept(tmp_path)
    (there,) = advice(tmp_path, channel)
    assert there.good


def test_a_channel_without_secrets_needs_nothing(tmp_path: Path) -> None:
    assert advice(tmp_path, WebhookChannel(name="w", url="https://example.org/")) == ()
    assert advice(tmp_path, MailChannel(name="m", to=("me",), smtp="localhost:25")) == ()


@pytest.mark.parametrize("key", ["LoadCredential", "LoadCredentialEncrypted"])
def test_the_service_may_bring_it_as_a_credential(tmp_path: Path, key: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file = kept(elsewhere)
    (told,) = advice(tmp_path, NTFY, "[Service]\nNice=5\n", f"[Service]\n{key}=token:{file}\n")
    assert (told.good, told.text) == (True, f"its secret lies at {file}, mode 0600")
    (commented,) = advice(tmp_path, NTFY, f"[Service]\n# {key}=token:{file}\n")
    assert not commented.good


def test_programs_and_libraries_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mail = MailChannel(name="m", to=("me",))
    monkeypatch.setattr(credentials, "_path", lambda: os.fspath(tmp_path))
    (none,) = advice(tmp_path, mail)
    assert "this machine has no sendmail" in none.text
    (tmp_path / "sendmail").write_text("#!/bin/sh\n")
    (tmp_path / "sendmail").chmod(0o755)
    assert advice(tmp_path, mail) == ()
    monkeypatch.setattr(credentials, "find_spec", lambda _: None)
    (bare,) = advice(tmp_path, AppriseChannel(name="a", url="json://example.org"))
    assert "poolferry[notices]" in bare.text

"""ntfy, webhook, ping and Apprise at a real web peer that fails, hangs, dribbles and sends elsewhere."""

import base64
import builtins
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.notice import (
    AppriseChannel,
    Channel,
    DeliveryFailed,
    NoticeType,
    NtfyChannel,
    PingChannel,
    WebhookChannel,
)
from orchestrator.notices.http_channel import ping_address
from orchestrator.notices.send import send_message
from orchestrator.notices.transport import SenderContext, send_within
from tests.notices.conftest import EVIL, message
from tests.peers import WebPeer

CHANNELS: tuple[Callable[[str], Channel], ...] = (
    lambda url: NtfyChannel(topic=f"{url}/s3cret"),
    lambda url: WebhookChannel(url=f"{url}/s3cret"),
    lambda url: PingChannel(url=f"{url}/s3cret"),
)
each_way = pytest.mark.parametrize("channel", CHANNELS, ids=["ntfy", "webhook", "ping"])
Way = Callable[[str], Channel]
# Apprise looks whether imghdr is there; Python 3.11 and 3.12 warn of it.
old_import = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


def test_ntfy_gets_title_priority_and_text(web: WebPeer, means: SenderContext) -> None:
    send_message(NtfyChannel(topic=f"{web.url}/t"), message(subject="Müllers Bilder"), means)
    ((_, path, headers, body),) = web.requests
    assert path == "/t"
    assert headers["Title"] == f"=?UTF-8?B?{base64.b64encode('Müllers Bilder'.encode()).decode()}?="
    assert (headers["Priority"], headers["Tags"]) == ("4", "rotating_light")
    assert body == "photos in backup: late\n  why\n"


def test_ntfy_gets_no_more_than_it_takes_as_text(web: WebPeer, means: SenderContext) -> None:
    send_message(NtfyChannel(topic=web.url), message(body="ä" * 9000), means)
    assert 2900 < len(web.requests[0][3].encode()) < 4000


def test_a_webhook_gets_the_facts_as_json(web: WebPeer, means: SenderContext, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("tk_secret\n")
    send_message(WebhookChannel(url=f"{web.url}/hook", token_file="token"), message(), means)  # noqa: S106 - a file's name
    ((_, _, headers, body),) = web.requests
    assert (headers["Content-Type"], headers["Authorization"]) == ("application/json", "Bearer tk_secret")
    assert json.loads(body) == {"format": 1, "kind": "trouble"}


@pytest.mark.parametrize(
    ("kind", "healthchecks", "plain"),
    [
        (NoticeType.START, "/ping/photos/start?create=1", "/ping/photos?create=1"),
        (NoticeType.SUCCESS, "/ping/photos?create=1", "/ping/photos?create=1"),
        (NoticeType.FAIL, "/ping/photos/fail?create=1", "/ping/photos?create=1"),
        (NoticeType.PROTECTED, "/ping/photos?create=1", "/ping/photos?create=1"),
        (NoticeType.UNPROTECTED, "/ping/photos/fail?create=1", "/ping/photos?create=1"),
    ],
)
def test_a_ping_goes_where_its_signal_belongs(
    web: WebPeer, means: SenderContext, kind: NoticeType, healthchecks: str, plain: str
) -> None:
    for style in ("healthchecks", "plain"):
        send_message(PingChannel(url=f"{web.url}/ping/{{job}}?create=1", style=style), message(kind), means)
    assert [path for _, path, *_ in web.requests] == [healthchecks, plain]


def test_a_job_name_stays_one_part_of_the_address() -> None:
    told = ping_address(
        PingChannel(url="https://h/{job}"), "https://h/{job}", message(NoticeType.SUCCESS, about="all jobs/?x")
    )
    assert told == "https://h/all%20jobs%2F%3Fx"


def test_the_address_may_stand_in_a_file(web: WebPeer, means: SenderContext, tmp_path: Path) -> None:
    (tmp_path / "topic").write_text(f"{web.url}/s3cret\n")
    send_message(NtfyChannel(topic="@topic"), message(), means)
    send_message(NtfyChannel(topic=f"@{tmp_path / 'topic'}"), message(), means)
    assert [path for _, path, *_ in web.requests] == ["/s3cret", "/s3cret"]


@pytest.mark.parametrize("held", ["", "\n", "file:///etc/passwd", "http://h/\x01", "h\udce9"])
def test_what_is_no_address_in_a_file_is_told_without_showing_it(
    means: SenderContext, tmp_path: Path, held: str
) -> None:
    (tmp_path / "topic").write_bytes(held.encode("utf-8", "surrogateescape"))
    with pytest.raises(DeliveryFailed) as caught:
        send_message(NtfyChannel(topic="@topic"), message(), means)
    assert "passwd" not in str(caught.value)


@each_way
@pytest.mark.parametrize("answer", [403, 404, 500, 302])
def test_a_refusal_is_told_without_the_address(web: WebPeer, patient: SenderContext, channel: Way, answer: int) -> None:
    web.answers = [answer]
    with pytest.raises(DeliveryFailed, match=rf"127\.0\.0\.1: HTTP {answer}") as caught:
        send_message(channel(web.url), message(), patient)
    assert "s3cret" not in str(caught.value)
    assert len(web.requests) == 1


@each_way
@pytest.mark.parametrize("illness", ["hang", "dribble"])
def test_a_peer_that_hangs_is_left_in_time_and_nothing_stays_behind(
    web: WebPeer, means: SenderContext, channel: Way, illness: str
) -> None:
    web.answers = [illness]
    begun = time.monotonic()
    with pytest.raises(DeliveryFailed, match=r"timed out|gave up after 1 s"):
        send_message(channel(web.url), message(), means)
    assert time.monotonic() - begun < 4
    for thread in threading.enumerate():
        if thread.name == "notice":
            thread.join(5)
            assert not thread.is_alive()


def test_nobody_at_the_port_is_told(means: SenderContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/t"
    with pytest.raises(DeliveryFailed, match="Connection refused"):
        send_message(NtfyChannel(topic=nobody), message(), means)


@each_way
def test_evil_text_stays_text(web: WebPeer, means: SenderContext, channel: Way) -> None:
    send_message(channel(web.url), message(subject=EVIL, body=EVIL), means)
    ((_, path, headers, _),) = web.requests
    assert path == "/s3cret"
    assert "Bcc" not in headers
    assert headers["Host"] in web.url


def test_a_mistake_of_a_sender_is_an_undelivered_message_too(means: SenderContext) -> None:
    def broken(_: object) -> None:
        raise KeyError("https://hooks.example.org/s3cret")

    with pytest.raises(DeliveryFailed, match=r"it failed with KeyError$"):
        send_within(broken, means.within)


@old_import
def test_apprise_carries_it_to_a_real_peer(web: WebPeer, patient: SenderContext, tmp_path: Path) -> None:
    (tmp_path / "chat").write_text(web.url.replace("http://", "json://") + "/s3cret\n")
    send_message(AppriseChannel(url="@chat"), message(), patient)
    ((_, path, _, body),) = web.requests
    told = json.loads(body)
    assert path.rstrip("/") == "/s3cret"
    assert (told["title"], told["type"]) == ("photos is late", "failure")
    assert "photos in backup: late" in told["message"]


@old_import
def test_apprise_says_when_it_could_not(web: WebPeer, patient: SenderContext) -> None:
    web.answers = [500]
    with pytest.raises(DeliveryFailed, match="Apprise could not deliver it"):
        send_message(AppriseChannel(url=web.url.replace("http://", "json://")), message(), patient)
    with pytest.raises(DeliveryFailed, match="does not know this address"):
        send_message(AppriseChannel(url="nonsense://x"), message(), patient)


def test_without_apprise_the_cure_is_told(monkeypatch: pytest.MonkeyPatch, means: SenderContext) -> None:
    real = builtins.__import__

    def absent(
        name: str, held: Mapping[str, Any] | None = None, own: Mapping[str, Any] | None = None,
        names: Sequence[str] | None = (), level: int = 0,
    ) -> Any:  # fmt: skip
        if name == "apprise":
            raise ImportError(name)
        return real(name, held, own, names or (), level)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(DeliveryFailed, match=r"poolferry\[notices\]"):
        send_message(AppriseChannel(url="json://h"), message(), means)


def test_https_needs_a_certificate_that_we_trust(
    web: WebPeer, patient: SenderContext, trust: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.server.socket = trust.wrap_socket(web.server.socket, server_side=True)
    secure = f"https://localhost:{web.server.server_port}/t"
    send_message(NtfyChannel(topic=secure), message(), patient)
    assert [path for _, path, *_ in web.requests] == ["/t"]
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(DeliveryFailed, match=r"localhost: .*CERTIFICATE_VERIFY_FAILED"):
        send_message(NtfyChannel(topic=secure), message(), patient)
    assert len(web.requests) == 1


@pytest.mark.parametrize("held", ["ftp://h/x", "https://h/ä"])
def test_only_the_web_is_spoken_to(means: SenderContext, tmp_path: Path, held: str) -> None:
    (tmp_path / "topic").write_text(held)
    with pytest.raises(DeliveryFailed, match=r"no http:// or https:// address|not plain ASCII"):
        send_message(NtfyChannel(topic="@topic"), message(), means)

"""ntfy, webhook and ping: one POST, whose peer may fail, hang or redirect us."""

import base64
import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from orchestrator.domain.notice import DeliveryFailed, Message, NoticeType, NtfyChannel, PingChannel, WebhookChannel
from orchestrator.notices.transport import (
    OpenConnections,
    SenderContext,
    read_secret,
    text_or_secret,
    to_many_lines,
    to_one_line,
)

_LOOKS = {  # priority (1 silent … 5 insistent) and tag, which ntfy shows as a small picture
    NoticeType.TROUBLE: ("4", "rotating_light"),
    NoticeType.REMINDER: ("4", "alarm_clock"),
    NoticeType.RECOVERY: ("3", "white_check_mark"),
    NoticeType.DIGEST: ("2", "clipboard"),
    NoticeType.TEST: ("3", "wave"),
}
_SIGNALS = {NoticeType.START: "/start", NoticeType.FAIL: "/fail", NoticeType.UNPROTECTED: "/fail"}
_LONGEST = 3000  # ntfy turns a message above 4096 bytes into an attachment
_TEXT = "text/plain; charset=utf-8"


def send_http(
    channel: NtfyChannel | WebhookChannel | PingChannel, message: Message, means: SenderContext, lines: OpenConnections
) -> None:
    """Send the message by one POST. Raises: DeliveryFailed."""
    match channel:
        case NtfyChannel():
            address, headers, body = channel.topic, _ntfy_headers(message), _ntfy_body(message)
        case WebhookChannel():
            address, headers, body = channel.url, {"Content-Type": "application/json"}, message.facts
        case PingChannel():
            address, headers, body = channel.url, {"Content-Type": _TEXT}, to_many_lines(message.body)
    token = None if isinstance(channel, PingChannel) else channel.token_file
    if token:
        headers = {**headers, "Authorization": f"Bearer {read_secret(token, means)}"}
    url = text_or_secret(address, means)
    _post(ping_address(channel, url, message) if isinstance(channel, PingChannel) else url, body, headers, means, lines)


def _ntfy_headers(message: Message) -> dict[str, str]:
    priority, tag = _LOOKS.get(message.kind, ("3", "package"))
    title = _header(to_one_line(message.subject)[:200])
    return {"Title": title, "Priority": priority, "Tags": tag, "Content-Type": _TEXT}


def _header(text: str) -> str:
    """Encode the text as a header's value; ntfy reads RFC 2047, and HTTP itself has no UTF-8."""
    return text if text.isascii() else f"=?UTF-8?B?{base64.b64encode(text.encode()).decode()}?="


def _ntfy_body(message: Message) -> str:
    return to_many_lines(message.body).encode()[:_LONGEST].decode("utf-8", "ignore")


def ping_address(channel: PingChannel, url: str, message: Message) -> str:
    """Return the address of this ping. Source: Healthchecks: /start and /fail follow the check's own path."""
    whole = url.replace("{job}", quote(message.about, safe=""))
    signal = _SIGNALS.get(message.kind, "") if channel.style == "healthchecks" else ""
    parts = urlsplit(whole)
    return parts._replace(path=parts.path.rstrip("/") + signal).geturl() if signal else whole


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect handler that follows none: a redirect would carry the token to an undeclared host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return None: the redirect becomes an error."""


def _opener(lines: OpenConnections) -> urllib.request.OpenerDirector:
    """Build an opener whose connections can be cut."""

    class PlainHttp(http.client.HTTPConnection):
        def connect(self) -> None:
            lines.hold(lambda: self.sock)
            super().connect()

    class TlsHttp(http.client.HTTPSConnection):
        def connect(self) -> None:
            lines.hold(lambda: self.sock)
            super().connect()

    class PlainHttpHandler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(PlainHttp, req)

    class TlsHttpHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(TlsHttp, req, context=ssl.create_default_context())

    return urllib.request.build_opener(_NoRedirects, PlainHttpHandler, TlsHttpHandler)


def _post(address: str, body: str, headers: Mapping[str, str], means: SenderContext, lines: OpenConnections) -> None:
    if urlsplit(address).scheme not in ("http", "https") or not (address.isascii() and address.isprintable()):
        raise DeliveryFailed("what stands in the file is no http:// or https:// address")
    told = {**headers, "User-Agent": "poolferry"}
    request = urllib.request.Request(address, body.encode(), told, method="POST")  # noqa: S310 - checked just above
    host = urlsplit(address).hostname
    try:
        _opener(lines).open(request, timeout=means.within).close()
    except urllib.error.HTTPError as error:
        error.close()
        raise DeliveryFailed(f"{host}: HTTP {error.code} {to_one_line(error.reason)}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = to_one_line(str(getattr(error, "reason", error))) or type(error).__name__
        raise DeliveryFailed(f"{host}: {why}") from None

"""What the notices (mail, ntfy, healthchecks) share: the facts of the event, a secret, one POST. Changes things.

Not a hook itself: it lies beside them.
"""

import argparse
import http.client
import json
import os
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit


class DeliveryError(Exception):
    """The peer did not take the notice; the text says why and holds no secret."""


def one_line(text: str) -> str:
    """The text on one line of printable signs: what came from a file name can end no header and forge no line."""
    text = re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)  # what was no UTF-8
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def told(name: str) -> str:
    """One fact of the environment on one line, such as told("WHY"); empty when it was not told."""
    return one_line(os.environ.get(f"POOLFERRY_{name}", ""))


def report() -> dict[str, Any]:
    """The run's report in the JSON object on stdin; empty when there is none: the notice goes out all the same."""
    try:
        found = json.load(sys.stdin)["report"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def headline() -> str:
    """Who and what, such as "photos: nothing to do"."""
    who = told("JOB") or " ".join(filter(None, ("disk", told("DISK"))))
    return f"{who}: {told('EVENT').replace('-', ' ')}"


def moved() -> str:
    """The bytes moved for people, such as "1.5 GiB"; empty when unknown."""
    if not told("MOVED_BYTES").isdecimal():
        return ""
    size = float(told("MOVED_BYTES"))
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.{0 if unit == 'bytes' else 1}f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def took() -> str:
    """The duration for people, such as "1 h 02 min"; empty when unknown."""
    try:
        seconds = round(float(told("SECONDS")))
    except (ValueError, OverflowError):
        return ""
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes} min {seconds:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def secret(name: str) -> str:
    """The first line of a file: a path, or a bare name inside $CREDENTIALS_DIRECTORY (systemd's LoadCredential)."""
    folder = "" if "/" in name else os.environ.get("CREDENTIALS_DIRECTORY", "")
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.readline().strip()
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {name}: {getattr(error, 'strerror', 'not text')}") from error
    if not (text and text.isascii() and text.isprintable()):
        raise argparse.ArgumentTypeError(f"{name}: its first line is empty or not plain ASCII")
    return text


def web_address(text: str) -> str:
    """The http(s) address given, or, for "@FILE", the one in that file: such an address often is a password."""
    address = secret(text[1:]) if text.startswith("@") else text
    if (
        urlsplit(address).scheme not in ("http", "https")
        or not (address.isascii() and address.isprintable())
        or " " in address
    ):
        raise argparse.ArgumentTypeError("expected an http:// or https:// address, or @FILE that holds one")
    return address


class KeepHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it would carry the token to a host nobody named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: the redirect becomes an error."""


def post(address: str, body: str, *, headers: Mapping[str, str], timeout: int, tries: int) -> None:
    """POST once; after silence or the server's own trouble again. Raises: DeliveryError."""
    request = urllib.request.Request(address, body.encode(), dict(headers), method="POST")  # noqa: S310 - see web_address
    why = ""
    for attempt in range(tries):
        time.sleep(attempt)
        try:
            urllib.request.build_opener(KeepHere).open(request, timeout=timeout).close()
            return
        except urllib.error.HTTPError as error:
            error.close()
            why = f"HTTP {error.code} {one_line(error.reason)}"
            if error.code < 500 and error.code not in (408, 429):
                break
        except (OSError, http.client.HTTPException) as error:
            why = one_line(str(getattr(error, "reason", error))) or type(error).__name__
    raise DeliveryError(f"{urlsplit(address).hostname}: {why}")


def deliver(send: Callable[[], None], *, within: int) -> int:
    """The exit status after sending. An undelivered notice is an error, but never one that keeps a run from beginning.

    Units: seconds for all of it; a socket's own timeout starts anew with each byte.
    """

    def give_up(*_: object) -> None:
        raise DeliveryError(f"gave up after {within} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(within)
    try:
        send()
    except DeliveryError as error:
        sys.stderr.write(f"not delivered: {error}\n")
        return 0 if told("EVENT") == "before" else 1
    finally:
        signal.alarm(0)
    return 0

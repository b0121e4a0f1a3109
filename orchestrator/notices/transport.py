"""The shared needs of all senders: this machine's name, the secrets in files, and time limits."""

import contextlib
import os
import re
import socket
import threading
from collections.abc import Callable

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.notice import DeliveryFailed
from orchestrator.domain.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderContext:
    """The settings of a sender. `secrets`: the folders for bare file names; `within`: time limit of one message."""

    host: str
    secrets: tuple[str, ...]
    within: Seconds = Seconds(10)


def to_one_line(text: str) -> str:
    """Render the text on one line of printable signs: so text from a file name can neither end a header nor forge a line."""
    text = re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)  # bytes that were no UTF-8
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def to_many_lines(text: str) -> str:
    """Render the text with each of its lines made printable; blanks at the beginning are kept."""
    lines = (line[: len(line) - len(line.lstrip(" "))] + to_one_line(line) for line in text.split("\n"))
    return "\n".join(lines)


def read_secret(name: str, means: SenderContext) -> str:
    """Read the first line of a file: a path, or a bare name in a folder of secrets. Raises: DeliveryFailed."""
    places = [name] if "/" in name else [os.path.join(folder, name) for folder in means.secrets]
    why = "there is no such file"
    for place in places:
        try:
            with open(place, encoding="utf-8", newline="\n") as file:
                text = file.readline().strip()
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            break
        if text and text.isascii() and text.isprintable():
            return text
        why = "its first line is empty or not plain ASCII"
        break
    raise DeliveryFailed(f"the secret {name} cannot be read: {why}")


def text_or_secret(text: str, means: SenderContext) -> str:
    """Return the text itself; for "@FILE", the content of that file. Raises: DeliveryFailed."""
    return read_secret(text[1:], means) if text.startswith("@") else text


class OpenConnections:
    """The connections of one sending, to cut them when it takes too long. A socket's own timeout restarts with each byte."""

    def __init__(self) -> None:
        self._held: list[Callable[[], socket.socket | None]] = []
        self._cut = False

    def hold(self, line: Callable[[], socket.socket | None]) -> None:
        """Add a function that returns the connection, once it exists. Raises: TimeoutError when the time is over."""
        self._held.append(line)
        if self._cut:
            raise TimeoutError("took too long")

    def cut(self) -> None:
        """Cut all connections, so that every wait for one of them ends."""
        self._cut = True
        for line in tuple(self._held):
            if found := line():
                with contextlib.suppress(OSError):
                    found.shutdown(socket.SHUT_RDWR)


def send_within(send: Callable[[OpenConnections], None], within: Seconds) -> None:
    """Send in a thread, and abandon it after the time limit. Raises: DeliveryFailed."""
    ends: list[BaseException] = []
    lines = OpenConnections()

    def sending() -> None:
        try:
            send(lines)
        except Exception as error:  # noqa: BLE001 - no error of a sender may end a run
            ends.append(error)

    thread = threading.Thread(target=sending, name="notice", daemon=True)
    thread.start()
    thread.join(within)
    if thread.is_alive():
        lines.cut()
        raise DeliveryFailed(f"gave up after {within:g} s")
    for error in ends:
        raise error if isinstance(error, DeliveryFailed) else DeliveryFailed(_plainly(error)) from error


def _plainly(error: BaseException) -> str:
    """Describe the error by its class. Why the class alone: the text may hold an address, and so a password."""
    return f"it failed with {type(error).__name__}"

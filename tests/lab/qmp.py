"""The line to a QEMU: commands and their answers, events as they come."""

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.common import LabError

_CLOSED: Mapping[str, Any] = {"error": {"desc": "the line to QEMU is closed"}}


def connected(path: Path, *, within: float) -> socket.socket:
    """A connection to a unix socket that may not be there yet. Raises LabError when it does not come."""
    until = time.monotonic() + within
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(str(path))
        except OSError as error:
            line.close()
            if time.monotonic() > until:
                raise LabError(f"nobody listens at {path}: {error}") from error
            time.sleep(0.01)
        else:
            return line


def hang_up(line: socket.socket, reader: threading.Thread) -> None:
    """Closes a connection another thread reads, and waits for that thread."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    reader.join(10)
    line.close()


class Qmp:
    """One QEMU's monitor, open from the start until `close`."""

    def __init__(self, path: Path, *, within: float = 20) -> None:
        self._line = connected(path, within=within)
        self._events: list[Mapping[str, Any]] = []
        self._changed = threading.Condition()
        self._answers: queue.Queue[Mapping[str, Any]] = queue.Queue()
        self._one_at_a_time = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ask("qmp_capabilities")

    def ask(self, what: str, **arguments: Any) -> Any:
        """The answer to a command; _ in the name of an argument stands for -. Raises LabError with QEMU's own words."""
        given = {key.replace("_", "-"): value for key, value in arguments.items()}
        with self._one_at_a_time:
            with contextlib.suppress(OSError):
                self._line.sendall(json.dumps({"execute": what, "arguments": given}).encode() + b"\n")
            try:
                answer = self._answers.get(timeout=60)
            except queue.Empty:
                raise LabError(f"QEMU did not answer {what}") from None
        if "error" in answer:
            raise LabError(f"QEMU, {what}: {answer['error'].get('desc')}")
        return answer["return"]

    def wait_for(self, event: str, *, device: str, seconds: float = 20) -> None:
        """Returns when the event has come for that device. Raises LabError when it does not."""

        def met() -> Mapping[str, Any] | None:
            return next((e for e in self._events if e["event"] == event and e["data"].get("device") == device), None)

        with self._changed:
            if not self._changed.wait_for(met, seconds):
                raise LabError(f"QEMU: no {event} of {device} within {seconds} s")
            self._events = [one for one in self._events if one is not met()]

    def close(self) -> None:
        """Hangs up."""
        hang_up(self._line, self._reader)

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._line.makefile("r") as lines:
            for line in lines:
                said = json.loads(line)
                if "event" in said:
                    with self._changed:
                        self._events.append(said)
                        self._changed.notify_all()
                elif "QMP" not in said:  # the greeting
                    self._answers.put(said)
        self._answers.put(_CLOSED)

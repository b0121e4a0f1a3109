"""Reports to the service manager by its own protocol (sd_notify(3)); nothing when it does not listen."""

import os
import socket
import time

from orchestrator.domain.names import printable_word

SHARE = 2  # divides the watchdog's timeout, so that one late ping is no failure


class ServiceManager:
    """The service manager that started us, if it listens."""

    def __init__(self) -> None:
        # Not passed on: children must not report in our name.
        self._address = os.environ.pop("NOTIFY_SOCKET", "")
        wanted, whom = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        ours = not whom or whom == str(os.getpid())
        self.ping_s = int(wanted) / 1e6 / SHARE if wanted.isdigit() and ours else None
        self._status = ""

    def ready(self) -> None:
        """Report that the start, or the reload, is complete."""
        self._tell("READY=1")

    def reloading(self) -> None:
        """Report that the configuration is being read again."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """Report that the end has begun."""
        self._tell("STOPPING=1")

    def alive(self) -> None:
        """Report that the daemon is alive."""
        self._tell("WATCHDOG=1")

    def status(self, text: str) -> None:
        """Report one line for `systemctl status`; only when it has changed."""
        if text != self._status:
            self._status = text
            self._tell(f"STATUS={printable_word(text)}")  # a second line would be another setting

    def _tell(self, text: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
            try:
                line.sendto(text.encode(), address)
            except OSError:
                return

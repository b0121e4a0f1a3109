"""A line between a host and its centre that can fall silent, as a firewall that forgot it lets it."""

import socket
import threading


class SilentLine:
    """Somebody between a host and the centre: passes bytes on, and from `silence` on takes all and passes none."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.silent = False
        self._left: int | None = None
        self._accepted = self._forgotten = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        """Pass nothing on any more; the connections stay."""
        self.silent = True

    def forget(self) -> None:
        """Pass nothing of the connections that are there on, and say so to nobody; those that come are passed."""
        self._forgotten = self._accepted

    def silence_after(self, count: int) -> None:
        """Pass so many bytes of the host on, and then nothing any more."""
        self._left = count

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                host, _ = self._listener.accept()
            except OSError:
                return
            centre = socket.create_connection(("127.0.0.1", self._port))
            self._accepted += 1
            for one, other in ((host, centre), (centre, host)):
                threading.Thread(
                    target=self._carry, args=(one, other, self._accepted, one is host), daemon=True
                ).start()

    def _carry(self, one: socket.socket, other: socket.socket, number: int, counts: bool) -> None:
        try:
            while said := one.recv(65536):
                if counts and self._left is not None:
                    self._left -= len(said)
                    self.silent |= self._left < 0
                if not self.silent and number > self._forgotten:
                    other.sendall(said)
        except OSError:
            pass
        finally:
            other.close()

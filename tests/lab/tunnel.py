"""A port of this host that leads to a unix socket in a machine, as `ssh -L` does: the machines have no network to here."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

from tests.lab.virtual import VirtualMachine

_RELAY = """use IO::Socket::UNIX; my $far = IO::Socket::UNIX->new(Peer => shift) or die $!; my $bytes;
if (my $child = fork) { syswrite($far, $bytes) while sysread(STDIN, $bytes, 65536); shutdown($far, 1); waitpid($child, 0) }
else { syswrite(STDOUT, $bytes) while sysread($far, $bytes, 65536) }"""
_PAUSE = 0.02


@contextlib.contextmanager
def tunnel(machine: VirtualMachine, path: str) -> Iterator[int]:
    """Listen until the block ends; the port. `path`: of the socket in the machine."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_serve, args=(machine, path, listening), name="tunnel", daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def _serve(machine: VirtualMachine, path: str, listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            near, _ = listening.accept()
            threading.Thread(target=_carry, args=(machine, path, near), name="tunnel call", daemon=True).start()


def _carry(machine: VirtualMachine, path: str, near: socket.socket) -> None:
    far = machine.popen(["/usr/bin/perl", "-e", _RELAY, path], stdin=True)

    def send() -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                far.feed(data)
        far.end_of_input()

    sender = threading.Thread(target=send, name="tunnel send", daemon=True)
    sender.start()
    at = 0
    with near, contextlib.suppress(OSError):
        while True:
            ended = far.poll() is not None
            data = far.said_since(at)
            near.sendall(data)
            at += len(data)
            if ended:
                break
            time.sleep(_PAUSE)
        near.shutdown(socket.SHUT_RDWR)
    far.kill()

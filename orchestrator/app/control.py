"""The daemon's control socket as its callers see it: its path, and one request with its answer."""

import contextlib
import json
import os
import socket
from collections.abc import Iterator

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.act import LONGEST_LINE, ActAnswer, ActRequest, encode_request
from orchestrator.domain.answers import NOT_READ, parse_json
from orchestrator.domain.errors import OrchestratorError

RUNTIME = "/run/poolferry"  # systemd's RuntimeDirectory: it goes with the daemon
GROUP = "poolferry"
_NAME = "control.sock"
_USUAL_STATE = "/var/lib/poolferry"
_PATIENCE_S = 20.0
_LONGEST_PATH = 100  # bytes; source: unix(7), sun_path has 108


def control_folder(where: compose.Directories) -> str:
    """Return the folder of the control socket: of the machine's own daemon below /run, of another one beside its history."""
    return RUNTIME if where.state == _USUAL_STATE else where.state


@contextlib.contextmanager
def control_address(where: compose.Directories) -> Iterator[str]:
    """Yield an address of the socket that is short enough, however deep its folder lies. Raises: OSError."""
    folder = control_folder(where)
    if len(os.fsencode(folder)) < _LONGEST_PATH - len(_NAME):
        yield os.path.join(folder, _NAME)
        return
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{opened}/{_NAME}"
    finally:
        os.close(opened)


class DaemonControl:
    """The daemon of these directories, to be asked for acts."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def trouble(self) -> OrchestratorError | None:
        """Return why it cannot be asked now, with what helps; None: it listens."""
        try:
            with control_address(self._settings.where) as address, socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_PATIENCE_S)
                probe.connect(address)
        except OSError as error:
            return _no_daemon(self._settings, error)
        return None

    def ask(self, request: ActRequest) -> ActAnswer:
        """Ask for an act; return the answer. Raises: OrchestratorError when it cannot be asked."""
        try:
            with control_address(self._settings.where) as address, socket.socket(socket.AF_UNIX) as asked:
                asked.settimeout(_PATIENCE_S)
                asked.connect(address)
                with contextlib.suppress(BrokenPipeError):  # a daemon that is asked too much answers before it has read
                    asked.sendall(encode_request(request))
                said = _read_line(asked)
        except OSError as error:
            raise _no_daemon(self._settings, error) from error
        return _parse_answer(said)


def _read_line(asked: socket.socket) -> bytes:
    said = b""
    while not said.endswith(b"\n") and len(said) <= LONGEST_LINE:
        piece = asked.recv(4096)
        if not piece:
            break
        said += piece
    return said


def _parse_answer(said: bytes) -> ActAnswer:
    try:
        told = parse_json(said)
        act = told["act"]
        return ActAnswer(
            accepted=told["accepted"] is True,
            act=None if act is None else int(act),
            said=str(told["said"]),
            later=told.get("later") is True,
        )
    except NOT_READ as error:
        raise OrchestratorError(
            "the daemon gave no answer that can be read, so it is not known what became of the request",
            hint="journalctl -u poolferry",
        ) from error


def encode_answer(answer: ActAnswer) -> bytes:
    """Return the line that answers a request."""
    told: dict[str, object] = {"accepted": answer.accepted, "act": answer.act, "said": answer.said}
    return json.dumps(told | ({"later": True} if answer.later else {})).encode() + b"\n"


def _no_daemon(settings: Settings, error: OSError) -> OrchestratorError:
    usual = settings.where.state == _USUAL_STATE
    if isinstance(error, PermissionError):
        return OrchestratorError(
            f"this page may not ask the daemon: its socket is for root and the group {GROUP}",
            hint="`poolferry setup web` makes the group and the units; then: systemctl restart poolferry.service poolferry-web.service",
        )
    if isinstance(error, BlockingIOError):  # source: unix(7), its queue of callers is full
        return OrchestratorError("too many ask the daemon at once", hint="ask again in a moment")
    if isinstance(error, TimeoutError):
        return OrchestratorError("the daemon does not answer", hint="systemctl restart poolferry.service")
    return OrchestratorError(
        "the daemon is not running",
        hint="systemctl enable --now poolferry.service" if usual else settings.repeat("daemon"),
    )

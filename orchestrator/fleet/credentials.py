"""The file of this host's role and password at the centre, in the state directory; only its owner may read it."""

import json
import os
import shlex

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fleet import KEY_FILE, FleetIdentity
from orchestrator.trees.beneath import Folder, Untrusted, open_to_others

_FORMAT = 1
_LARGEST = 4 << 10  # bytes; ours has 300


def read_identity(state: str) -> FleetIdentity | None:
    """Return who this host is at its centre; None: it has joined none. Raises: OrchestratorError when others may read the file."""
    path = f"{state}/{KEY_FILE}"
    try:
        with Folder(state) as folder, open(folder.open_file(KEY_FILE), "rb") as file:
            owners = (0, os.geteuid(), os.fstat(folder.fd).st_uid)
            if complaint := open_to_others(os.fstat(file.fileno()), owners):
                raise OrchestratorError(
                    f"{path} {complaint}, so others may speak for this host",
                    hint=f"chmod 600 {shlex.quote(path)}; if somebody else may have read it, join anew",
                )
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except Untrusted as error:
        raise OrchestratorError(f"{path} {error.strerror}", hint="remove it, and join anew") from None
    except OSError as error:
        why = f"{path} cannot be read: {error.strerror}"
        raise OrchestratorError(why, hint="run as the user whose state it is") from error
    return _parse(content, path)


def keep_identity(state: str, identity: FleetIdentity) -> None:
    """Write the file, completely or not at all. Raises: OrchestratorError."""
    told = {
        "about": "This host's role and password at the centre of its fleet. Keep it secret; who loses it joins anew.",
        "format": _FORMAT, "host": identity.host, "role": identity.role, "password": identity.password,
    }  # fmt: skip
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        with Folder(state) as folder:
            folder.write_file(KEY_FILE, (json.dumps(told, indent=2) + "\n").encode())
    except OSError as error:
        hint = "see whether the state directory can be written and has room"
        raise OrchestratorError(f"{state}/{KEY_FILE} cannot be made: {error.strerror}", hint=hint) from error


def drop_identity(state: str) -> None:
    """Remove the file, if it is there."""
    try:
        with Folder(state) as folder:
            folder.remove_file(KEY_FILE)
    except FileNotFoundError:
        return


def _parse(content: bytes, path: str) -> FleetIdentity:
    try:
        told = json.loads(content) if len(content) <= _LARGEST else None
        if not isinstance(told, dict) or told.get("format") != _FORMAT:
            raise ValueError("another format")
        values = {name: told[name] for name in ("host", "role", "password")}
        if not all(isinstance(value, str) for value in values.values()):
            raise ValueError("other types")
        return FleetIdentity(**values)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise OrchestratorError(f"{path} holds nothing of ours", hint="remove it, and join anew") from None

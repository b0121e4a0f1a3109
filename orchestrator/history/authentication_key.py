"""The file of this host's key, beside the history: made once when first needed, and opened only to make or judge a tag."""

import json
import os
import shlex
from datetime import UTC, datetime

from orchestrator.domain.authentication import KEY_BYTES, AuthenticationKey
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.names import KEY_FILE
from orchestrator.trees.beneath import Folder, Untrusted, open_to_others

_FORMAT = 1
_LARGEST = 4 << 10  # bytes; ours has 150


def read_key(state: str) -> AuthenticationKey | None:
    """Return the key of a state directory; None when there is none. Raises: OrchestratorError when it is not trustworthy."""
    path = f"{state}/{KEY_FILE}"
    try:
        with Folder(state) as folder, open(folder.open_file(KEY_FILE), "rb") as file:
            owners = (0, os.geteuid(), os.fstat(folder.fd).st_uid)
            if complaint := open_to_others(os.fstat(file.fileno()), owners):
                raise OrchestratorError(
                    f"{path} {complaint}, so its tags prove nothing",
                    hint=f"chown {os.geteuid()} {shlex.quote(path)} && chmod 600 {shlex.quote(path)}; if somebody else may have read it, remove it: "
                    "a new key is made, and tags of the old one can no longer be shown to be ours",
                )
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except Untrusted as error:
        raise OrchestratorError(
            f"{path} {error.strerror}", hint=f"rm -r -- {shlex.quote(path)} (a new key is made)"
        ) from None
    except OSError as error:
        raise OrchestratorError(
            f"{path} cannot be read: {error.strerror}", hint="run as the user whose state it is"
        ) from error
    return _parse(content, path)


def obtain_key(state: str, now: datetime) -> AuthenticationKey:
    """Return the key of a state directory; create it if missing. Raises: OrchestratorError."""
    key = read_key(state)
    if key is not None:
        return key
    told = {
        "about": "The key of this host's tags on manifests and disk markers. Keep it secret; losing it loses no copy.",
        "format": _FORMAT, "made": now.astimezone(UTC).isoformat(), "key": os.urandom(KEY_BYTES).hex(),
    }  # fmt: skip
    try:
        with Folder(state) as folder:
            folder.create_file(KEY_FILE, (json.dumps(told, indent=2) + "\n").encode())
    except FileExistsError:
        pass  # another run was faster: its key is used
    except OSError as error:
        hint = "see whether the state directory can be written and has room"
        raise OrchestratorError(f"{state}/{KEY_FILE} cannot be made: {error.strerror}", hint=hint) from error
    made = read_key(state)
    if made is None:
        raise OrchestratorError(f"{state}/{KEY_FILE} was made and is gone", hint="find out who removes files there")
    return made


def _parse(content: bytes, path: str) -> AuthenticationKey:
    try:
        told = json.loads(content) if len(content) <= _LARGEST else None
        if not isinstance(told, dict) or told.get("format") != _FORMAT:
            raise ValueError("another format")
        key = bytes.fromhex(told["key"])
        if key.hex() != told["key"]:
            raise ValueError("not as it was written")
        return AuthenticationKey(key, datetime.fromisoformat(told["made"]).astimezone(UTC))
    except (ValueError, OverflowError, KeyError, TypeError, RecursionError):
        hint = f"put the kept copy of it back; or, without one: rm -- {shlex.quote(path)} (a new key is made)"
        raise OrchestratorError(f"{path} is no key that this version can read", hint=hint) from None

"""A state directory for a restore when the real one cannot be used: data come back from the target alone."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TypeVar

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import HistoryError, OrchestratorError
from orchestrator.domain.names import KEY_FILE
from orchestrator.process.background import nameless_file

_Result = TypeVar("_Result")
_NEEDED = 1 << 20  # bytes that the records of a restore may take
_ELSEWHERE = ("/run", "/dev/shm")  # noqa: S108 - a folder of our own is made there, 0700


@contextlib.contextmanager
def with_usable_state(settings: Settings) -> Iterator[Settings]:
    """Yield these settings; with a state directory for this command alone where the real one is full, read-only or damaged.

    Raises: OrchestratorError when nothing can be written anywhere.
    """
    why = why_unusable(settings)
    if not why:
        yield settings
        return
    with _spare_settings(settings, why) as usable:
        yield usable


def on_usable_state(settings: Settings, action: Callable[[Settings], _Result]) -> _Result:
    """Return the result of an action with these settings; again with a state directory for this command alone where the history fails in it.

    Why again: what is damaged in a history shows only where it is read, and a restore goes on with what came back. Raises: OrchestratorError.
    """
    with with_usable_state(settings) as usable:
        try:
            return action(usable)
        except HistoryError as error:
            if usable is not settings:
                raise
            why = error.why
    with _spare_settings(settings, why) as usable:
        return action(usable)


@contextlib.contextmanager
def _spare_settings(settings: Settings, why: str) -> Iterator[Settings]:
    import shutil  # 10 ms that most restores save

    with _spare(why) as spare:
        with contextlib.suppress(OSError):  # without the key a manifest's tag cannot be judged, which the restore says
            shutil.copyfile(os.path.join(settings.where.state, KEY_FILE), os.path.join(spare, KEY_FILE))
            os.chmod(os.path.join(spare, KEY_FILE), 0o600)
        settings.say(
            f"the state directory {settings.where.state} cannot be used ({why}): this command works from the target alone, and "
            "is recorded nowhere; to record it, name another directory with --state"
        )
        yield Settings(config=settings.config, state=spare, subscriber=settings.subscriber)


def why_unusable(settings: Settings, *, look: bool = False) -> str:
    """Return why nothing can be recorded; empty when it can. `look`: leave the history as it is, in an older format or locked, too."""
    try:
        if look:
            from orchestrator.history.write_check import check_writable

            check_writable(settings.where.history)
        else:
            with compose.open_history(settings.where) as history, history.together():
                pass
        folder = os.path.join(settings.where.state, "notes")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _write_in(folder)
    except HistoryError as error:
        return error.why
    except OSError as error:
        return str(error.strerror)
    return ""


def _write_in(folder: str) -> None:
    """Write as much as a restore may record, and forget it. Raises: OSError."""
    with nameless_file(folder) as file:
        file.write(bytes(_NEEDED))
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _spare(why: str) -> Iterator[str]:
    import tempfile

    for folder in (None, *_ELSEWHERE):
        try:
            _write_in(folder or tempfile.gettempdir())
        except OSError:
            continue
        with tempfile.TemporaryDirectory(prefix="poolferry-", dir=folder) as spare:
            yield spare
        return
    raise OrchestratorError(
        f"the state directory cannot be used ({why}), and neither can /tmp, /run or /dev/shm",
        hint="name a folder that can be written, with --state",
    )

"""Another name for a job: its file, its history and its state get it; what lies at targets keeps knowing the job by its first name.

The texts of all files are recorded before the first one is written; the same command finishes what was cut.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping

from orchestrator import compose
from orchestrator.app.config_files import read_config_files, read_text, replace_file, require_valid, sync_folder
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.answers import open_sealed, seal_text, split_lines
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import JOB_NAME

_LIST = r"^[ \t]*{key}[ \t]*=[ \t]*\[[^\]]*\]"
_NOTES = ("", "kit-", "drill-", "try-", "verify-", "look-")


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRecord:
    """A rename that was begun. `texts`: what changed files hold then, by path; `moves`: files and folders that are renamed."""

    before: str
    now: str
    texts: Mapping[str, str]
    moves: tuple[tuple[str, str], ...]


def rename_job(settings: Settings, before: str, now: str) -> RenameRecord:
    """Rename a job, or finish a rename that was cut. Raises: WrongRequest · NotNow · DeclarationError · HistoryError · OSError."""
    from orchestrator.app.pidfile import ask_to_reload
    from orchestrator.runner.locks import lock_names, rename_record

    where = settings.where
    for name in (before, now):
        if not JOB_NAME.fullmatch(name):
            told = "letters, digits, dots, - and _, the first a letter or a digit"
            raise WrongRequest(f"{name!r} is no name for a job, expected {told}")
    path = rename_record(where.state)
    with lock_names((before, now), where.state), compose.open_history(where) as history:
        begun = read_record(path)
        if begun is not None and (begun.before, begun.now) != (before, now):
            first = settings.repeat(f"rename {begun.before} {begun.now}")
            raise WrongRequest(f"the rename of {begun.before} to {begun.now} was cut", f"`{first}` finishes it first")
        if begun is None:
            begun = _plan(settings, before, now)
            if history.renames.knows(now):
                raise WrongRequest(f"history remembers another job {now}: choose a name that no job has had")
            replace_file(path, record_text(begun), mode=0o600)
        _carry_out(begun)
        history.renames.rename(before, now)
        ask_to_reload(
            where.state
        )  # a daemon forgets what it owes to jobs that are gone: not before they have the new name
        os.unlink(path)
        sync_folder(os.path.dirname(path))
    return begun


def _plan(settings: Settings, before: str, now: str) -> RenameRecord:
    """Return the record of a rename, after a look whether the configuration is valid with it."""
    known, where = settings.configuration(), settings.where
    job = known.job(before)
    if any(one.name == now for one in known.jobs):
        raise WrongRequest(f"there is a job {now} already")
    folder = os.path.join(known.directory, "jobs")
    own = os.path.join(folder, f"{before}.toml")
    texts = {own: _with_identity(read_text(own), job.identity, now)}
    for one in known.jobs:
        if before in one.after:
            path = os.path.join(folder, f"{one.name}.toml")
            texts[path] = _with_name(texts.get(path) or read_text(path), "after", before, now)
    machine = os.path.join(known.directory, "poolferry.toml")
    if os.path.exists(machine):
        held = read_text(machine)
        if (changed := _with_name(held, "jobs", before, now)) != held:
            texts[machine] = changed
    files = read_config_files(known.directory)
    files |= {os.path.relpath(path, known.directory): text for path, text in texts.items()}
    files[f"jobs/{now}.toml"] = files.pop(f"jobs/{before}.toml")
    require_valid(settings, files)
    moves = [(own, os.path.join(folder, f"{now}.toml"))]
    moves += [(f"{where.state}/notes/{kind}{before}", f"{where.state}/notes/{kind}{now}") for kind in _NOTES]
    moves += [(f"{where.state}/sanoid/{before}", f"{where.state}/sanoid/{now}")]
    return RenameRecord(before=before, now=now, texts=texts, moves=tuple(moves))


def _with_identity(text: str, identity: str, now: str) -> str:
    """Return the job's file with the name by which its copies know it; without it, when that is its name again."""
    lines = [f"{line}\n" for line in split_lines(text) if not re.match(r"[ \t]*known-as[ \t]*=", line)]
    if identity == now:
        return "".join(lines)
    at = next((at + 1 for at, line in enumerate(lines) if re.match(r"[ \t]*engine[ \t]*=", line)), 0)
    return "".join([*lines[:at], f'known-as = "{identity}"\n', *lines[at:]])


def _with_name(text: str, key: str, before: str, now: str) -> str:
    """Return a file in whose lists of this key the job has its new name."""
    name = re.compile(rf"([\"'])({re.escape(before)})\1")
    lists = re.compile(_LIST.format(key=key), re.MULTILINE)
    return lists.sub(lambda found: name.sub(rf"\g<1>{now}\g<1>", found[0]), text)


def _carry_out(begun: RenameRecord) -> None:
    """Write the files, and move what has the job's name; what is done already is passed over."""
    for path, text in begun.texts.items():
        if os.path.exists(path):
            replace_file(path, text)
    for path, to in begun.moves:
        if os.path.lexists(path):
            if os.path.isdir(to) and not os.path.islink(to):
                shutil.rmtree(to)  # of a job that had the name before: notes that nobody goes on with
            os.rename(path, to)
    # Before history has the new name: a power cut must not leave the files with the old one then.
    for folder in dict.fromkeys(os.path.dirname(path) for move in begun.moves for path in move):
        if os.path.isdir(folder):
            sync_folder(folder)


def record_text(begun: RenameRecord) -> str:
    """Return the record as text."""
    told = {"before": begun.before, "now": begun.now, "texts": dict(begun.texts), "moves": begun.moves}
    return seal_text(json.dumps(told))


def read_record(path: str) -> RenameRecord | None:
    """Return the rename that was begun; None: there is none. Raises: WrongRequest for a record that cannot be read."""
    try:
        told = json.loads(open_sealed(read_text(path)))
        moves = tuple((str(one), str(to)) for one, to in told["moves"])
        return RenameRecord(before=told["before"], now=told["now"], texts=told["texts"], moves=moves)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise WrongRequest(f"{path} cannot be read ({error}): remove it, and look at the job's file by hand") from None

"""Questions that a key asked before, recorded with what answers them: the same question again needs no Python (`scripts/hand-over.pl`).

Why: a run with nothing to do asks one question, the same each time, and to start Python for it costs ten times what perl takes. The
answer depends on the question's line, the gate's file and the version of the program alone. So a record holds as long as all three are
what they were, and for a day at most. What is looked at for each request besides, is looked at there, too: who may write the gate's file and the folders above
it, how many requests are answered at once. The answer is shut in as by `confine.become_for_datasets`, and is noted in the journal.
"""

import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Command
from orchestrator.process.confine import DATASET_VARIABLES, confinement_to_datasets, ends_others
from orchestrator.process.handover import HAND_OVER, PERL, program_identity, state_of
from orchestrator.process.program_path import is_missing

_MOST, _LONGEST = 64, 64 << 10  # questions of one gate, those that came last; bytes of a question's line
_MOST_BYTES = 1 << 20  # of them all; more is not read
_HOLDS = 86400  # seconds; as hand-over.pl has it
_WHEN = 2  # the field that says when it was recorded
_AGE = 2  # seconds since the gate's file was changed: what is changed again meanwhile would look the same


@dataclass(frozen=True, slots=True, kw_only=True)
class GateQuestion:
    """A question that was admitted. `file`, `mark`: the gate's file, and what was seen of it before it was read; `most`: its connections."""

    line: str
    shown: str
    file: str
    mark: str
    most: int


def questions_file(state: str, gate: str) -> str:
    """Return the path of a gate's file of questions."""
    return f"{state}/gate-{gate}.asked"


def mark_file(path: str, now: float) -> str:
    """Return what is seen of a file, which changes with it; nothing for one that was changed just now. `now`: seconds. Raises: OSError."""
    seen = os.lstat(path)
    times = seen.st_mtime_ns // 10**9, seen.st_ctime_ns // 10**9
    if max(times) + _AGE > now:
        return ""
    about = (seen.st_dev, seen.st_ino, seen.st_mode, seen.st_nlink, seen.st_uid, seen.st_gid, seen.st_size, *times)
    return " ".join(map(str, about))


def is_answered_by_record(path: str) -> bool:
    """Return whether a record with this gate's file would be looked at: all that is above it is ours or root's alone. Raises: OSError."""
    if state_of(sys.argv[1:]) is None or not (os.access(PERL, os.X_OK) and os.path.isfile(HAND_OVER)):
        return False
    parts = path.split("/")
    return path.startswith("/") and all(_is_ours("/".join(parts[:end]) or "/") for end in range(1, len(parts) + 1))


def _is_ours(path: str) -> bool:
    """Return whether nobody but us and root can change what is at a path, as hand-over.pl looks at it."""
    seen = os.lstat(path)
    sticky = stat.S_ISDIR(seen.st_mode) and seen.st_mode & stat.S_ISVTX
    return (
        not stat.S_ISLNK(seen.st_mode)
        and seen.st_uid in (0, os.geteuid())
        and (not seen.st_mode & 0o022 or bool(sticky))
    )


def with_question(recorded: bytes, question: GateQuestion, command: Command, *, now: float) -> bytes:
    """Return what is recorded of a gate with one more question, and the command that answers it; `now`: seconds.

    Where the same is recorded, and holds, nothing changes.
    """
    line, identity = os.fsencode(question.line), os.fsencode(program_identity())
    if len(line) > _LONGEST:
        return recorded
    known = list(_unpacked(recorded))
    answer = _answer(command, most=question.most, shown=question.shown)
    entry = _packed((
        identity, line, b"%d" % now, os.fsencode(question.file), question.mark.encode(), *answer, b"end",
    ))  # fmt: skip
    if any(_is_same(each, entry) for each in known):
        return recorded
    kept = [*(each for each in known if _is_other(each, identity, line)), entry][-_MOST:]
    while len(whole := _packed(kept)) > _MOST_BYTES:
        del kept[0]
    return whole


def answer_message(command: Command, *, most: int, shown: str) -> bytes:
    """Return what `hand-over.pl` needs to become a command that asks zfs now, as `confine.become_for_datasets` does. `most`: the gate's
    connections.

    Raises: OSError for a missing program.
    """
    if is_missing(command.argv[0], DATASET_VARIABLES):
        raise FileNotFoundError(command.argv[0])
    return _packed((*_answer(command, most=most, shown=shown), b"end"))


def _answer(command: Command, *, most: int, shown: str) -> tuple[bytes, ...]:
    version, ruleset, rules = confinement_to_datasets(signals=ends_others(command))
    allowed = (
        field for path, *rights in rules for field in (path.encode(), *(struct.pack("=Q", each) for each in rights))
    )
    variables = {**DATASET_VARIABLES, **dict(command.environment)}
    return (
        b"%d" % most, b"%d" % version, ruleset, _packed(allowed), _packed(word.encode() for pair in variables.items() for word in pair),
        _packed(map(os.fsencode, command.argv)), os.fsencode(shown),
    )  # fmt: skip


def _is_same(entry: bytes, new: bytes) -> bool:
    """Return whether an entry says the same as a new one, and holds for long enough yet."""
    (*there,), (*wanted,) = _unpacked(entry), _unpacked(new)
    if len(there) != len(wanted) or not there[_WHEN].isdigit():
        return False
    age = int(wanted[_WHEN]) - int(there[_WHEN])
    del there[_WHEN], wanted[_WHEN]
    return there == wanted and 0 <= age < _HOLDS


def _is_other(entry: bytes, identity: bytes, line: bytes) -> bool:
    """Return whether an entry is of this very program, and of another question."""
    whose, asked, *_ = (*_unpacked(entry), b"", b"")
    return whose == identity and asked != line


def _packed(fields: Iterable[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(field)) + field for field in fields)


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yield the fields of what we recorded ourselves; those that are whole."""
    at = 0
    while at + 4 <= len(data):
        end = at + 4 + int(struct.unpack_from(">I", data, at)[0])
        if end > len(data):
            return
        yield data[at + 4 : end]
        at = end

"""The host's side of the ledger: what the history knows goes to the centre, in order, in batches, and again after any cut.

Before a batch goes, the history remembers its name; the centre stores the name with it, in one transaction. So after a cut each side
knows whether it was stored. A centre whose last batch this history does not know shows that one of both was put back from an older
copy: then everything is told again, and rows whose numbers mean something else at the centre become a new incarnation.
"""

import contextlib
import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.fleet_line import CentreLine
from orchestrator.app.fleet_members import declared_fleet, require_identity
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import (
    CentreFull,
    CentreRefused,
    CentreUnreachable,
    HistoryError,
    NotNow,
    OrchestratorError,
)
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.ledger import NAMED, SUBJECTS, LedgerProgress, LedgerRow, divide, incarnation_of

if TYPE_CHECKING:
    from orchestrator.fleet.connection import CentreSession
    from orchestrator.history.outbox import OutboxHistory
    from orchestrator.history.store import History

Say = Callable[[str], None]
SOON_S = 15.0  # after a change: a run writes many rows, and a connection costs a centre of thousands something
RETRY_S = 60.0  # after the first failure
_LONGEST_PAUSE_S = (
    600.0  # of a host whose visits are days apart, too: what it is to know waits no longer once the centre is back
)
_LOOK_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRows:
    """One visit at the centre. `rows`: how many it took; `waiting`: how many wait still; `unfit`: those that it does not take.

    `seen`: the mark of the history up to which all was told; empty: something came meanwhile.
    """

    host: str
    rows: int
    waiting: int
    unfit: tuple[str, ...]
    seen: tuple[int, ...] = ()


def send_once(settings: Settings, *, every_s: float) -> SentRows:
    """Tell the centre all that waits, and how each job stands, in a session of its own. Arguments, errors: as of `visit_centre`."""
    with contextlib.closing(CentreLine("sender")) as line:
        return visit_centre(settings, line, every_s=every_s)


def visit_centre(settings: Settings, line: CentreLine, *, every_s: float) -> SentRows:
    """Tell the centre all that waits, and how each job stands. `every_s`: within what time the next visit is promised.

    Raises: CentreUnreachable · CentreRefused · NotNow when another process is at it · HistoryError.
    """
    identity, fleet = require_identity(settings), declared_fleet(settings)
    with (
        lock_of_fleet(settings.where.state, "fleet"),
        compose.open_history(settings.where) as history,
        line.visit(fleet, identity) as centre,
    ):
        from orchestrator.app.fleet_beat import beat
        from orchestrator.history.database import history_mark

        sender = LedgerSender(history, centre, settings.say, state=settings.where.state)
        try:
            sent = sender.send_all()
        except CentreFull:  # this host lives, and its jobs stand as they do: that the centre still hears
            with contextlib.suppress(CentreUnreachable, CentreRefused):
                beat(settings, history, centre, sender.progress.host, every_s=every_s)
            raise
        # Before all that is told of now: what is written from here on is a change.
        seen = history_mark(settings.where.history)
        waiting = history.outbox.count()
        beat(settings, history, centre, sender.progress.host, every_s=every_s)
    return replace(sent, waiting=waiting, seen=() if waiting else seen)


@contextlib.contextmanager
def lock_of_fleet(state: str, name: str) -> Iterator[None]:
    """Hold the lock of the one process of a state directory that speaks to the centre of this. Raises: NotNow."""
    folder = os.path.join(state, "locks")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotNow(
                "another process, as the daemon's, is telling the centre right now", hint="it does the same"
            ) from None
        yield
    finally:
        os.close(descriptor)


class LedgerSender:
    """One visit at the centre: first both sides agree on what it has, then it gets the rest.

    No transaction of the history is open while the centre is asked: a run never waits for it.
    """

    def __init__(self, history: "History", centre: "CentreSession", say: Say, *, state: str) -> None:
        from orchestrator.config.this_machine import machine_id_hash
        from orchestrator.fleet.ledger import end_older_sessions, read_progress
        from orchestrator.fleet.tickets import show_ticket

        self._outbox: OutboxHistory = history.outbox
        self._centre = centre
        self._say = say
        self._unfit: list[str] = []
        self.progress = read_progress(centre)
        _require_this_machine(self.progress)
        show_ticket(centre, state, name=self.progress.name, machine=machine_id_hash(), renew=True)
        end_older_sessions(centre)  # after it: a copy of this machine ends none of its sessions
        self._begins = self._outbox.begins()
        known = [which for each in self._begins.values() for _, which in each]
        self._incarnation = max([self.progress.incarnation, *known])
        self._batch = self._agree()

    def send_all(self) -> SentRows:
        """Send until nothing waits."""
        sent = 0
        while rows := self._outbox.page():
            sent += self._send(rows)
        return SentRows(host=self.progress.name, rows=sent, waiting=self._outbox.count(), unfit=tuple(self._unfit))

    def _agree(self) -> str:
        """Return the last batch that both sides know to be stored."""
        mark, there = self._outbox.mark(), self.progress
        if mark is not None and mark.centre == there.centre:
            if there.batch == mark.batch:
                return mark.batch
            if mark.sending and there.batch == mark.sending:  # it was stored, and the answer was lost
                self._outbox.stored(mark.sending, mark.sending_last)
                return mark.sending
        same_centre = mark is not None and mark.centre == there.centre
        self._tell_all_again(back=bool(same_centre and mark and there.last >= mark.last))
        return there.batch

    def _tell_all_again(self, *, back: bool) -> None:
        """Tell the centre everything; rows that it knows as others begin a new incarnation. `back`: this history is the older side."""
        there, first = self.progress, self._division()
        if back:
            self._say(
                f"this history is an older copy of what the centre knows of {there.name}: what is new is told as new"
            )
        if first:
            self._incarnation += 1
        self._outbox.join(
            there.centre, there.batch, above=there.last, incarnation=self._incarnation, first=first, back=back
        )

    def _division(self) -> dict[str, int]:
        """Return from which number on the rows of each subject are a new incarnation; empty: the centre knows no others of them."""
        from orchestrator.fleet.ledger import births_at_centre

        if not self.progress.batch:
            return {}
        there: dict[str, dict[int, int]] = {subject: {} for subject in SUBJECTS}
        for (subject, incarnation, key), born in births_at_centre(self._centre, self.progress.host).items():
            if subject not in NAMED and incarnation == incarnation_of(subject, key, self._begins):
                there[subject][int(key)] = born
        numbered = [subject for subject in SUBJECTS if subject not in NAMED]
        first = {subject: divide(self._outbox.births(subject), there[subject]) for subject in numbered}
        taken = any(number >= first[subject] for subject in numbered for number in there[subject])
        return first if taken else {}

    def _send(self, rows: tuple[LedgerRow, ...]) -> int:
        """Send a batch; return how many of its rows the centre took. One that it does not take is set aside by name."""
        from orchestrator.fleet.ledger import UnfitRow, store_batch

        attempt, last = uuid.uuid4().hex, rows[-1].seq
        self._outbox.sending(attempt, last)
        try:
            store_batch(
                self._centre,
                rows,
                host=self.progress.host,
                before=self._batch,
                batch=attempt,
                incarnation=self._incarnation,
            )
        except UnfitRow as error:
            if len(rows) > 1:
                return self._send(rows[: len(rows) // 2]) + self._send(rows[len(rows) // 2 :])
            told = f"{rows[0].subject} {rows[0].key}: {error.why}"
            self._say(f"the centre takes no {told}")
            self._unfit.append(told)
            self._outbox.drop(rows[0].seq)
            return 0
        self._outbox.stored(attempt, last)
        self._batch = attempt
        return len(rows)


def _require_this_machine(progress: LedgerProgress) -> None:
    """Check that this machine is the one that joined. Raises: CentreRefused, by name."""
    import shlex

    from orchestrator.config.this_machine import machine_id_hash

    if progress.machine != machine_id_hash():
        raise CentreRefused(
            f"another machine joined as {progress.name}: this one has a copy of its password, or got a new machine-id",
            hint=f"at the centre: `poolferry fleet invite {shlex.quote(progress.name)} --again` for this machine, or another name",
        )


def send_again_and_again(settings: Settings, *, every_s: float) -> None:
    """Tell the centre at least so often, and soon after each change, until a signal ends the process, wherever it is.

    A centre that is away is said once, and once when it is back; meanwhile the outbox grows to the rows that changed, and no more.
    Why no orderly end: it could not wait for a line that is silent, and whatever is cut here is done again.
    """
    from orchestrator.history.database import history_mark

    told, pause, tries, away = float("-inf"), 0.0, 0, ""
    seen: tuple[int, ...] = ()
    with contextlib.closing(CentreLine("sender")) as line:
        while True:
            passed = compose.monotonic() - told
            changed = not tries and history_mark(settings.where.history) != seen and passed >= min(SOON_S, every_s)
            if changed or passed >= pause:
                told = compose.monotonic()
                done = _try_to_send(settings, line, every_s)
                error = done if isinstance(done, OrchestratorError) else None
                tries, pause = _next_try(error, tries, every_s)
                kind = type(error).__name__ if error else ""
                if kind != away:  # its words may differ each time
                    settings.say(
                        f"{error.why}; {error.hint}; it is tried again by itself"
                        if error
                        else "the centre is told again"
                    )
                away, seen = kind, done.seen if isinstance(done, SentRows) else history_mark(settings.where.history)
            compose.sleep(min(_LOOK_S, every_s))


def _next_try(error: OrchestratorError | None, tries: int, every_s: float) -> tuple[int, float]:
    """Return how many visits failed at the centre, and how long to wait. Only its own failures make it be left alone for longer.

    Another process that is at it, or a history that cannot be read for a moment, say nothing about it.
    """
    if error is None:
        return 0, every_s
    if isinstance(error, CentreUnreachable | CentreRefused):
        return tries + 1, _pause_after(tries + 1, every_s)
    return tries, min(RETRY_S, every_s)


def _pause_after(tries: int, every_s: float) -> float:
    """Return how long to wait after so many failures: more and more, and each host another time, so that not all come back at once."""
    longest = min(RETRY_S * 2.0 ** min(tries - 1, 6), every_s, _LONGEST_PAUSE_S)
    return longest * (0.75 + 0.25 * compose.random_fraction())


def _try_to_send(settings: Settings, line: CentreLine, every_s: float) -> SentRows | OrchestratorError:
    """Send once; return what was sent, or why it failed."""
    try:
        return visit_centre(settings, line, every_s=every_s)
    except (CentreUnreachable, CentreRefused, NotNow, HistoryError) as error:
        return error

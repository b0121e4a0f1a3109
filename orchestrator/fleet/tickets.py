"""Tickets: of two copies of one machine only the one that shows the newest speaks for the host, at its centre.

A ticket is a random number that a host makes up, writes down, and leaves at the centre at a visit; at the next one it shows it and leaves another.
A machine that was copied or put back, also while it ran, takes along the ticket of that moment, which is not the newest any more once either of
both has visited. Why a file below `locks`, written in place: both threads that visit the centre need it, and most full disks still take that; where one
does not, such as ZFS, no new ticket is left at the centre, as the next start would not know it.
"""

import fcntl
import os
import re
import shlex
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from orchestrator.domain.errors import CentreRefused, HistoryError
from orchestrator.domain.fleet_watch import FleetFinding
from orchestrator.domain.units import show_duration
from orchestrator.fleet.connection import CentreSession, Row

ANSWER_S = 15.0
SILENT_S = 900.0  # after so long without a sign of the other one a copy is taken in; as the centre has it
_FILE = "fleet-ticket"
_LENGTH = 74  # bytes
_TICKET = rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_TICKETS = re.compile(rb"%b %b\n" % (_TICKET, _TICKET))
_SIGNATURE = "poolferry.show_ticket(text, uuid[], uuid)"
_SHOW = "SELECT accepted, valid::text, heard FROM poolferry.show_ticket(%s, %s::uuid[], %s::uuid)"


class NameInUse(CentreRefused):
    """Another machine speaks for this host at the centre: this one has an older ticket, or another machine-id."""


def show_ticket(centre: CentreSession, state: str, *, name: str, machine: str, renew: bool, older: bool = True) -> str:
    """Show this host's ticket; return the newest, or nothing where the centre is of before tickets. `renew`: leave a new one.

    `older`: also with an older one, once the other machine is silent. Raises: NameInUse where another machine speaks for this host
    · CentreUnreachable · CentreRefused.
    """
    with _open_tickets(state) as file:
        shown, row = file.read(), None
        renew = renew and (shown is None or file.write(*shown))
        unsure = shown is not None and shown[0] != shown[1]
        # Which of both the centre has is known before there is a third.
        if shown and (unsure or not renew or not older):
            row = _ask(centre, machine, shown, None)
            if row and row["accepted"] is None and not older:
                raise NameInUse(
                    f"the centre has a newer ticket of {shlex.quote(name)} than this machine: another one went on as that host, or the centre was put back"
                )
            if row and row["accepted"] and unsure:
                shown = row["valid"], row["valid"]
                file.write(*shown)
        if row is None or row["accepted"] is None or (renew and row["accepted"]):
            new = str(uuid.uuid4())
            file.write(shown[0] if shown else new, new)  # before it is left there: the answer may be lost
            row = _ask(centre, machine, shown, new)
            if row and row["accepted"]:
                file.write(new, new)
            elif row and shown:
                file.write(*shown)
        if row is None:  # of before tickets, or this host is no member
            return ""
        if not row["accepted"]:
            raise _in_use(name, row["heard"])
        return str(row["valid"])


def forget_ticket(state: str) -> None:
    """Forget the tickets of a membership that is over: they would look like older ones of the next."""
    with _open_tickets(state) as file:
        file.clear()


def take_order(centre: CentreSession, key: str, *, attempt: int, ticket: str) -> bool:
    """Take an order with the newest ticket, before it is begun; return False where it is over, or another machine may begin it."""
    values = (key, attempt, ticket)
    row = centre.first("SELECT poolferry.take_order(%s::uuid, %s, %s::uuid) AS taken", values, seconds=ANSWER_S)
    return bool(row and row["taken"])


def find_copies(centre: CentreSession) -> tuple[FleetFinding, ...]:
    """Return the hosts of which two machines visited the centre lately."""
    return tuple(
        FleetFinding(
            about=f"copies of {row['name']}", kind="copy", bad=True,
            why=f"two machines visit the centre as {row['name']}: one is a copy of the other, and the one that came last at {row['other_at']:%H:%M} UTC is "
            "heard no more, its orders are not carried out and what it tells waits there; its runs go on",
            hint="on the one that is the copy: `poolferry fleet leave`; then invite it under a name of its own",
        )
        for row in centre.rows(_COPIES)
    )  # fmt: skip


_COPIES = (
    "SELECT h.name, t.other_at AT TIME ZONE 'UTC' AS other_at FROM poolferry.tickets t JOIN poolferry.hosts h ON h.id = t.host"
    " WHERE t.other_at > now() - interval '30 minutes' AND h.left_at IS NULL ORDER BY h.name"
)


def _ask(centre: CentreSession, machine: str, shown: tuple[str, str] | None, new: str | None) -> Row | None:
    """Ask the centre; None: it is of before tickets, or this host is no member."""
    if not centre.has_function(_SIGNATURE, seconds=ANSWER_S):
        return None
    return centre.first(_SHOW, (machine, list(shown or ()), new), seconds=ANSWER_S)


def _in_use(name: str, heard: object) -> NameInUse:
    hint = "on the one that is the copy: `poolferry fleet leave`; then it joins under a name of its own"
    if not isinstance(heard, float):
        return NameInUse(f"another machine joined as {name}: this one has a copy of its password", hint=hint)
    return NameInUse(
        f"another machine speaks at the centre as {shlex.quote(name)}, {show_duration(heard)} ago: this one is a copy of it, or was put back to an older "
        f"copy. So it tells nothing and gets no orders, and its runs go on; it is taken in once the other one is silent for {show_duration(SILENT_S)}",
        hint=hint,
    )


@contextmanager
def _open_tickets(state: str) -> Iterator["_TicketFile"]:
    """Open the file of this host's tickets, for one thread at a time. Raises: HistoryError where it cannot be made.

    Why it may wait: nobody holds it for longer than an answer takes.
    """
    folder = os.path.join(state, "locks")
    path = os.path.join(folder, _FILE)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HistoryError(
            f"this host's ticket for the centre cannot be opened: {path}: {error.strerror}",
            hint=f"make room, or give back the right to write, in {shlex.quote(state)}; the next visit goes on by itself",
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield _TicketFile(path, descriptor)
    finally:
        os.close(descriptor)


class _TicketFile:
    """The ticket that the centre had last, and one that it may have besides; kept by this process where the disk takes nothing."""

    _unwritten: ClassVar[dict[str, tuple[str, str]]] = {}  # by path

    def __init__(self, path: str, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor

    def read(self) -> tuple[str, str] | None:
        """Return both; None: there is none."""
        if self._path in self._unwritten:
            return self._unwritten[self._path]
        found = _TICKETS.fullmatch(os.pread(self._descriptor, _LENGTH + 1, 0))
        return (found[1].decode(), found[2].decode()) if found else None

    def write(self, last: str, sent: str) -> bool:
        """Write both in place; return whether the disk has them, or this process alone."""
        try:
            os.pwrite(self._descriptor, f"{last} {sent}\n".encode(), 0)
            os.fdatasync(self._descriptor)
        except OSError:
            self._unwritten[self._path] = last, sent
            return False
        self._unwritten.pop(self._path, None)
        return True

    def clear(self) -> None:
        """Remove both."""
        self._unwritten.pop(self._path, None)
        os.ftruncate(self._descriptor, 0)

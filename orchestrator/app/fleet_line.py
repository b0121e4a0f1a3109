"""The session of one purpose at the centre, kept between visits, so that a host that has much to tell does not log in each time.

Why not always: ten thousand hosts would need ten thousand processes there. It is kept while less than half of the centre's connections
are in use; beyond that each visit logs in, and goes.
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestrator.domain.errors import CentreRefused, CentreUnreachable

if TYPE_CHECKING:
    from orchestrator.domain.fleet import FleetIdentity
    from orchestrator.domain.machine import FleetOptions
    from orchestrator.fleet.connection import CentreSession

LOGINS_S = (
    50  # hosts that look for orders by logging in, each second: a centre of two busy cores takes three times as many
)
PROBE_S = 5.0  # a session that was idle answers within that, or another one is opened


class CentreLine:
    """A line to the centre for one thread. `purpose`: what `pg_stat_activity` shows to all, so it names no host."""

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self._session: CentreSession | None = None
        self.least_pause_s = (
            0.0  # until the next visit, so that all hosts whose visits log in are not too much for the centre
        )
        self._made_for: tuple[FleetOptions, FleetIdentity] | None = None

    @contextlib.contextmanager
    def visit(self, fleet: "FleetOptions", identity: "FleetIdentity") -> Iterator["CentreSession"]:
        """Open a context with a session that answered a moment ago. Raises: CentreUnreachable, CentreRefused."""
        session, keep = self._answering((fleet, identity))
        try:
            yield session
        except BaseException:
            self.close()
            raise
        if not keep:
            self.close()

    def close(self) -> None:
        """End the session, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception):
                session.close()

    def _keeps(self, session: "CentreSession") -> bool:
        """Return True when the centre has room for this session between two visits."""
        from orchestrator.fleet.connection import read_capacity

        room = read_capacity(session, PROBE_S)
        self.least_pause_s = 0.0 if room.stay else room.hosts / LOGINS_S
        return room.stay

    def _answering(self, wanted: "tuple[FleetOptions, FleetIdentity]") -> "tuple[CentreSession, bool]":
        """Return a session that answers, and whether the centre has room to keep it. A kept one that went half open is replaced."""
        from orchestrator.fleet.connection import open_centre

        if self._session is not None and self._made_for == wanted:
            try:
                return self._session, self._keeps(self._session)
            except (
                CentreUnreachable,
                CentreRefused,
            ):  # cut, silent, or ended there: whatever it was, a new one says it better
                pass
        self.close()
        fleet, identity = self._made_for = wanted
        session = self._session = open_centre(fleet, identity, purpose=self._purpose)
        return session, self._keeps(session)

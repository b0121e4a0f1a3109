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

PROBE_S = 5.0  # a session that was idle answers within that, or another one is opened


class CentreLine:
    """A line to the centre for one thread. `purpose`: what `pg_stat_activity` shows to all, so it names no host."""

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self._session: CentreSession | None = None
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

    def _answering(self, wanted: "tuple[FleetOptions, FleetIdentity]") -> "tuple[CentreSession, bool]":
        """Return a session that answers, and whether the centre has room to keep it. A kept one that went half open is replaced."""
        from orchestrator.fleet.connection import has_room_to_stay, open_centre

        if self._session is not None and self._made_for == wanted:
            try:
                return self._session, has_room_to_stay(self._session, PROBE_S)
            except (
                CentreUnreachable,
                CentreRefused,
            ):  # cut, silent, or ended there: whatever it was, a new one says it better
                pass
        self.close()
        fleet, identity = self._made_for = wanted
        session = self._session = open_centre(fleet, identity, purpose=self._purpose)
        return session, has_room_to_stay(session, PROBE_S)

"""Pages over all hosts of a fleet: what needs a person, the hosts, runs with their host as a column, orders and permits."""

from typing import TYPE_CHECKING

from orchestrator.app.fleet_overview import fleet_hosts, fleet_pools, fleet_runs, fleet_status
from orchestrator.domain.fleet_status import HostState
from orchestrator.domain.run import Outcome
from orchestrator.views.fleet import SILENT_HINT, job_hint, job_sentence, odd_sentence
from orchestrator.views.watched_pools import fill_said, scan_said

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.web.pages import Pages

_MOST_HOSTS, _MOST_RUNS = 200, 100


class FleetPages:
    """The pages of a fleet. `centre`: its address, where this process is known by its user. Each method raises OrchestratorError."""

    def __init__(self, pages: "Pages", settings: "Settings", centre: str | None) -> None:
        self._pages = pages
        self._settings = settings
        self._centre = centre

    def hosts(self, name: str, state: str) -> str:
        """Return the page of all hosts. `name`: with * for any text; `state`: only these; empty: all."""
        only = next((each for each in HostState if each.value == state), None)
        sought = (name if "*" in name else f"*{name}*") if name else None
        found = fleet_hosts(self._settings, self._centre, state=only, name=sought, limit=_MOST_HOSTS)
        return self._pages.render(
            "fleet.html", status=fleet_status(self._settings, self._centre), hosts=found, sought=name, only=state,
            states=[each.value for each in HostState], most=_MOST_HOSTS,
            odd_sentence=odd_sentence, job_sentence=job_sentence, job_hint=job_hint, silent_hint=SILENT_HINT,
        )  # fmt: skip

    def pools(self, host: str) -> str:
        """Return the page of the watched pools. `host`: only of this one; empty: of all."""
        found = fleet_pools(self._settings, self._centre, host=host or None, limit=_MOST_HOSTS)
        return self._pages.render(
            "fleet_pools.html", pools=found, host_sought=host, most=_MOST_HOSTS, fill_said=fill_said, scan_said=scan_said,
        )  # fmt: skip

    def orders(self) -> str:
        """Return the page of the newest orders."""
        from orchestrator.app.fleet_orders import list_orders
        from orchestrator.views.orders import job_lines, order_said, order_state, order_until, order_what

        found = list_orders(self._settings, _MOST_RUNS, centre=self._centre)
        return self._pages.render(
            "fleet_orders.html", orders=found, most=_MOST_RUNS, what=order_what, state=order_state, until=order_until, said=order_said, job_lines=job_lines,
        )  # fmt: skip

    def permits(self) -> str:
        """Return the page of the limits, of the permits that are lent, and of the queue."""
        from orchestrator.app.fleet_limits import survey_permits
        from orchestrator.views.permits import permit_long, permit_word

        found = survey_permits(self._settings, centre=self._centre)
        return self._pages.render(
            "fleet_permits.html", found=found, most=_MOST_HOSTS, word=permit_word, long=permit_long
        )

    def runs(self, host: str, job: str, outcome: str) -> str:
        """Return the page of the newest runs. Each argument: only of this one; empty: of all."""
        only = outcome if outcome in {each.value for each in Outcome} else None
        found = fleet_runs(
            self._settings, self._centre, host=host or None, job=job or None, outcome=only, limit=_MOST_RUNS
        )
        return self._pages.render(
            "fleet_runs.html",
            runs=found,
            host_sought=host,
            job=job,
            only=only or "",
            outcomes=[each.value for each in Outcome],
        )

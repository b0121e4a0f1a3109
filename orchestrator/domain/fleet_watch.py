"""Findings of a fleet's centre: what no host can see by itself."""

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.fleet_status import silent_at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFinding:
    """One thing that was looked at. `about`: such as "host web-1"; `bad`: a person is needed.

    `kind`: silent, quota, copy, target, disk, session, locks, shut-out, permit, order or clock.
    """

    about: str
    kind: str
    bad: bool
    why: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetWatch:
    """One look at a fleet. `removed`: how many old rows were removed."""

    findings: tuple[FleetFinding, ...]
    removed: int

    @property
    def bad(self) -> tuple[FleetFinding, ...]:
        """Return those that need a person."""
        return tuple(each for each in self.findings if each.bad)

    @property
    def silent_sentence(self) -> str:
        """Return what it means when most hosts are silent; empty: most are heard."""
        hosts = [each.bad for each in self.findings if each.kind == "silent"]
        return silent_at_once(sum(hosts), len(hosts) - sum(hosts))

"""The one door of a gate: a request is answered by the first of its rights that knows it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.domain.gate import LACKS, Gate, GateRefusal
from orchestrator.domain.plan import Command
from orchestrator.gate.request import GateRequest

if TYPE_CHECKING:
    from orchestrator.gate.add_points import PointAddition
    from orchestrator.gate.receive import Reception


def admit(request: GateRequest, gate: Gate) -> "tuple[str, Command | Reception | PointAddition]":
    """Return the right by which a request is answered, and what answers it.

    Raises: GateRefusal, with what the last of the gate's rights said; or which right would answer it, where the gate has it not.
    """
    refusal = GateRefusal("it lets nothing through")
    for right, answer in _rights(gate):
        try:
            return right, answer(request)
        except GateRefusal as said:
            refusal = said
    raise _lacked(request, gate) or refusal


def _lacked(request: GateRequest, gate: Gate) -> GateRefusal | None:
    """Return the refusal that names the right which would let this through for what the gate is about; None: no right does."""
    others = (
        Gate(sends="" if gate.sends else gate.receives),
        Gate(receives="" if gate.receives else gate.sends),
        *(Gate(adds=folder) for folder in gate.reads if not gate.adds),
    )
    for other in others:
        for right, answer in _rights(other):
            with suppress(GateRefusal):
                answer(request)
                return GateRefusal(f'{LACKS}{right} = "{getattr(other, right)}" would let it through')
    return None


def _rights(gate: Gate) -> "Iterator[tuple[str, Callable[[GateRequest], Command | Reception | PointAddition]]]":
    """Yield the gate's rights; each is imported only where it is had."""
    if gate.reads:
        from orchestrator.gate.read_only import admit_reading

        yield "reads", partial(admit_reading, gate=gate)
    if gate.adds:
        from orchestrator.gate.add_points import admit_adding

        yield "adds", partial(admit_adding, root=gate.adds)
    if gate.sends:
        from orchestrator.gate.send import admit_sending

        yield "sends", partial(admit_sending, root=gate.sends, pools=gate.pools)
    if gate.receives:
        from orchestrator.gate.receive import admit_receiving

        yield "receives", partial(admit_receiving, root=gate.receives)

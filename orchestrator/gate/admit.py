"""The one door of a gate: a request is answered by the first of its rights that knows it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.domain.gate import Gate, GateRefusal
from orchestrator.domain.plan import Command
from orchestrator.gate.request import GateRequest

if TYPE_CHECKING:
    from orchestrator.gate.add_points import PointAddition
    from orchestrator.gate.receive import Reception


def admit(request: GateRequest, gate: Gate) -> "tuple[str, Command | Reception | PointAddition]":
    """Return the right by which a request is answered, and what answers it.

    Raises: GateRefusal, with what the last of the gate's rights said.
    """
    refusal = GateRefusal("it lets nothing through")
    for right, answer in _rights(gate):
        try:
            return right, answer(request)
        except GateRefusal as said:
            refusal = said
    raise refusal


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

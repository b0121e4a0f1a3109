"""Whether an engine implements a protocol of the contract.

Why not isinstance with runtime_checkable: it imports `inspect` on Python 3.12 and later, which a plain run has no time for.
"""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import TypeIs

P = TypeVar("P")


def implements(engine: object, protocol: type[P]) -> "TypeIs[P]":
    """Return True when the engine has each method that the protocol names."""
    return all(hasattr(engine, name) for name in vars(protocol) if not name.startswith("_"))

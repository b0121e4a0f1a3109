"""The question which of two sides is older, asked once a gate did not know a request: a run that ends well pays nothing for it."""

from orchestrator import __version__
from orchestrator.domain.answers import split_lines
from orchestrator.domain.errors import OrchestratorError, PermissionDenied
from orchestrator.domain.gate import (
    PROTOCOLS,
    GateHello,
    GateTooOld,
    common_protocol,
    format_hello,
    is_unknown_request,
    parse_hello,
    who_upgrades,
)
from orchestrator.domain.names import printable_word
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.engines.zfs.commands import commands
from orchestrator.process.executor import Reader

_PATIENCE = Seconds(60)
_SAID = "upgrade poolferry on"  # by a gate with which we have no version in common


def with_older_side(error: OrchestratorError, asked: Command, reader: Reader) -> OrchestratorError:
    """Return the error of a refused request; where versions are why, one that says which side is to be upgraded."""
    host = asked.host
    if host is None or not isinstance(error, PermissionDenied) or not is_unknown_request(_words(error)):
        return error
    hello = commands.hello_command(host, format_hello(GateHello(poolferry=__version__)))
    result = reader.read(Pipeline(stages=(hello,)), timeout=_PATIENCE)
    there, told = str(host), "\n".join(result.last_output)
    if not result.well:
        if _SAID in told:
            line = next(line for line in split_lines(told) if _SAID in line)
            return _older(f"the gate at {there} is newer than this poolferry: {printable_word(line)}", "this machine")
        if is_unknown_request(told):
            return _older(f"the gate at {there} is older than this poolferry ({error.why})", there)
        return error
    try:
        theirs = parse_hello(result.stdout.partition(b"\n")[0]).protocols
    except ValueError:
        return error
    if common_protocol(theirs) is None:
        return GateTooOld(who_upgrades(theirs, here="this machine", there=there))
    if max(theirs) < max(PROTOCOLS):
        return _older(f"the gate at {there} is older than this poolferry ({error.why})", there)
    return error


def _words(error: PermissionDenied) -> str:
    return " ".join(error.evidence.last_output)


def _older(why: str, where: str) -> GateTooOld:
    return GateTooOld(why, hint=f"upgrade poolferry on {where}")

"""mbuffer's own connection between the two machines: whether a job may use it, and the addresses for each stream."""

from collections.abc import Iterator
from datetime import datetime
from itertools import count

from orchestrator.domain.job import Job
from orchestrator.domain.network import is_public
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import Line, Side, Wire, World

# Above the ports that Linux gives to outgoing connections by itself. Source: ip_local_port_range, 32768 to 60999.
FIRST_PORT, LAST_PORT = 61000, 65535
PORTS = f"{FIRST_PORT} to {LAST_PORT}"
_COUNT = LAST_PORT - FIRST_PORT + 1
_SSH = 'or transport = "ssh" in [pipe]'


def is_open(job: Job) -> bool:
    """Return whether the job's streams leave ssh; between pools of one machine nothing has to."""
    return job.pipe.transport == "mbuffer" and bool(job.source.host or job.target.location.host)


def lines(job: Job, world: World, now: datetime) -> Iterator[Line] | None:
    """Return a connection for each stream, on ports that change from run to run; None: all goes through ssh."""
    from hashlib import sha256  # few jobs ask

    far = world.source if world.source.root.host else world.target
    if not is_open(job) or far.wire is None:
        return None
    sender, receiver = far.wire.here, far.wire.there
    if far is world.source:
        sender, receiver = receiver, sender
    start = int.from_bytes(sha256(f"{job.name} {now.isoformat()}".encode()).digest()[:8])
    return (Line(sender=sender, receiver=receiver, port=FIRST_PORT + (start + n) % _COUNT) for n in count())


def refuse(job: Job, source: Side, target: Side) -> Refusal | None:
    """Return a refusal when the streams may not use a connection of their own."""
    if not is_open(job):
        return None
    for side in (source, target):
        if not side.mbuffer:
            where = side.root.host or "this machine"
            why = f'transport = "mbuffer", and mbuffer is not installed on {where}'
            return Refusal(why=why, evidence=(), cure=f"apt install mbuffer there; {_SSH}")
    far = source if source.root.host else target
    return refuse_wire(job, far.root.host, far.wire)


def refuse_wire(job: Job, host: Host | None, wire: Wire | None) -> Refusal | None:
    """Return a refusal when mbuffer cannot, or may not, connect to the address that ssh uses."""
    if wire is None:
        why = f"{host} does not tell by which address it is reached, so mbuffer cannot connect"
        return Refusal(why=why, evidence=(), cure=_SSH.removeprefix("or "))
    ends = (wire.here, wire.there)
    evidence = (f"ssh goes from {wire.here} to {wire.there}",)
    if any(":" in address for address in ends):
        why = f"{host} is reached by IPv6, where mbuffer of Debian 12 cannot tell who connects"
        return Refusal(why=why, evidence=evidence, cure=f'ssh-options = ["-4"]; {_SSH}')
    public = next((address for address in ends if is_public(address) is not False), None)
    if public and not job.pipe.public_transport:
        why = f"{public} is a public address, and mbuffer's own connection is not encrypted"
        cure = f"public-transport = true in [pipe] if everybody may read the data; {_SSH}"
        return Refusal(why=why, evidence=evidence, cure=cure)
    return None

"""mbuffer's own connection between the two machines: whether a job may use it, and the addresses for each stream."""

from collections.abc import Iterator
from datetime import datetime
from itertools import count

from orchestrator.domain.job import Job
from orchestrator.domain.place import Host, is_public
from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import MbufferConnection, SideSurvey, SshAddresses, ZfsSurvey

# Above the ports that Linux uses for outgoing connections. Source: ip_local_port_range, 32768 to 60999.
FIRST_PORT, LAST_PORT = 61000, 65535
PORTS = f"{FIRST_PORT} to {LAST_PORT}"
_COUNT = LAST_PORT - FIRST_PORT + 1
_SSH = 'or transport = "ssh" in [pipe]'


def uses_own_connection(job: Job) -> bool:
    """Return whether the job's streams bypass ssh; between pools of one machine they need not."""
    return job.pipe.transport == "mbuffer" and bool(job.source.host or job.target.location.host)


def choose_connections(job: Job, world: ZfsSurvey, now: datetime) -> Iterator[MbufferConnection] | None:
    """Return a connection for each stream, on ports that change from run to run; None: all streams use ssh."""
    from hashlib import sha256  # few jobs need it

    far = world.source if world.source.root.host else world.target
    if not uses_own_connection(job) or far.wire is None:
        return None
    sender, receiver = far.wire.here, far.wire.there
    if far is world.source:
        sender, receiver = receiver, sender
    start = int.from_bytes(sha256(f"{job.name} {now.isoformat()}".encode()).digest()[:8])
    return (
        MbufferConnection(sender=sender, receiver=receiver, port=FIRST_PORT + (start + n) % _COUNT) for n in count()
    )


def refuse_transport(job: Job, source: SideSurvey, target: SideSurvey) -> Refusal | None:
    """Return a refusal when the streams may not use a connection of their own."""
    if not uses_own_connection(job):
        return None
    for side in (source, target):
        if not side.mbuffer:
            where = side.root.host or "this machine"
            why = f'transport = "mbuffer", and mbuffer is not installed on {where}'
            return Refusal(why=why, evidence=(), hint=f"apt install mbuffer there; {_SSH}")
    far = source if source.root.host else target
    return refuse_addresses(job, far.root.host, far.wire)


def refuse_addresses(job: Job, host: Host | None, wire: SshAddresses | None) -> Refusal | None:
    """Return a refusal when mbuffer cannot, or may not, connect to the address that ssh uses."""
    if wire is None:
        why = f"{host} does not say by which address it is reached, so mbuffer cannot connect"
        return Refusal(why=why, evidence=(), hint=_SSH.removeprefix("or "))
    ends = (wire.here, wire.there)
    evidence = (f"ssh goes from {wire.here} to {wire.there}",)
    if any("%" in address for address in ends):
        why = f"{host} is reached by a link-local address, which has another name on each machine"
        return Refusal(why=why, evidence=evidence, hint=f'ssh-options = ["-4"]; {_SSH}')
    public = next((address for address in ends if is_public(address) is not False), None)
    if public and not job.pipe.public_transport:
        why = f"{public} is a public address, and mbuffer's own connection is not encrypted"
        hint = f"public-transport = true in [pipe] if everybody may read the data; {_SSH}"
        return Refusal(why=why, evidence=evidence, hint=hint)
    return None

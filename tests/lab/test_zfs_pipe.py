"""mbuffer's own connection between two machines, and what a person sees of a stream under way."""

import pytest

from tests.lab.common import Machine
from tests.lab.cuts import COPY, PATIENCE, SOURCE, Chain, Copying, answer
from tests.lab.laboratory import Pair
from tests.whole.house import wait_until

pytestmark = pytest.mark.virtual
LONG = Chain(a=7, b=1, c=1)
_DOORS = "ss -Hltn | awk '{print $4}' | grep -E ':6[1-5][0-9]{3}$'"


def doors(machine: Machine) -> tuple[str, ...]:
    """Ports of ours that are open there."""
    return tuple(machine.sh(_DOORS, check=False).lines)


def require_quiet(copying: Copying) -> None:
    copying.require_equal()
    copying.require_nothing_left()
    assert not doors(copying.sender)
    assert not doors(copying.receiver)


@pytest.mark.flavours("trixie", long=["bookworm"])  # mbuffer is another one too
@pytest.mark.long
def test_a_copy_and_its_increments_go_by_an_open_connection(pair: Pair) -> None:
    carry(pair, pulls=False)


@pytest.mark.long
def test_they_are_pulled_too(pair: Pair) -> None:
    carry(pair, pulls=True)


def carry(pair: Pair, *, pulls: bool) -> None:
    """All of a chain, then one snapshot more."""
    copying = Copying(*pair, pulls=pulls, transport="mbuffer")
    system = copying.at.poolferry("check", "--system").out.decode()
    assert "mbuffer, in the clear between 10.99.0." in system, system
    told = copying.run()
    assert told["outcome"] == "done", told["why"]
    assert copying.stream * 0.99 < told["moved_bytes"] < copying.stream * 1.01
    require_quiet(copying)
    copying.sender.sh(f"head -c 64k /dev/urandom > /tank/photos/d && zfs snapshot {SOURCE}@d")
    told = copying.run()
    assert (told["outcome"], told["attempts"]) == ("done", 1), told
    assert copying.guids(copying.sender, SOURCE) == copying.guids(copying.receiver, COPY)


@pytest.mark.parametrize("what", ["poolferry", pytest.param("link", marks=pytest.mark.long)])
def test_a_cut_leaves_a_token_and_no_open_door(pair: Pair, what: str) -> None:
    copying = Copying(*pair, chain=LONG, transport="mbuffer", rate="500k", stall_after="10s")
    run = copying.begin()
    copying.wait_for(0.3)
    copying.wait_for_token()
    if what == "poolferry":
        run.kill(9)
    else:
        pair.cut()
    ended = run.wait(PATIENCE)
    if what != "poolferry":
        assert answer(ended)["outcome"] == "failed"
    # Whoever cannot be told of a dead link finds out by himself.
    wait_until(lambda: not copying.receiver.sh("pgrep -x 'mbuffer|zfs'", check=False).lines, 90, pause=1)
    assert not doors(copying.receiver)
    pair.mend()
    told = copying.run()
    assert (told["outcome"], told["resumed"]) == ("done", True), told
    require_quiet(copying)
    assert sum(copying.story(number)["moved_bytes"] or 0 for number in (1, 2)) < copying.stream * 1.3


def test_a_public_address_is_refused_before_anything_is_sent(pair: Pair) -> None:
    master, backup = pair
    copying = Copying(*pair, transport="mbuffer")
    for machine, last in ((master, 1), (backup, 2)):
        machine.sh(f"ip addr add 198.51.100.{last}/24 dev eth0")
    job = (
        master.read("/etc/poolferry/jobs/photos.toml")
        .decode()
        .replace('CountMax=4"', 'CountMax=4", "-oStrictHostKeyChecking=no"')
    )
    master.job("photos", job, targets='[place.vault]\ndataset = "ssh://root@198.51.100.2/vault"\n')
    checked = master.poolferry("check")
    assert checked.code == 2
    assert "198.51.100.2 is a public address" in checked.complaint + checked.text
    # Under a name, only the connection itself tells.
    master.sh("printf '198.51.100.2 far\\n' >> /etc/hosts")
    master.job("photos", job, targets='[place.vault]\ndataset = "ssh://root@far/vault"\n')
    refused = master.poolferry("run", "photos", "--json")
    assert refused.code == 3
    assert "is a public address" in refused.json["why"]
    assert not backup.sh("zfs list -H -o name -r vault").text.replace("vault", "", 1)
    master.job("photos", job.replace('"mbuffer"', '"mbuffer"\npublic-transport = true'))
    assert copying.run()["outcome"] == "done"

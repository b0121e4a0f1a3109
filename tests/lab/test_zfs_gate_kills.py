"""Each request of a gate for datasets, ended by kill -9 in its middle, there or here: the next run ends as ever, and nothing stays behind."""

import shlex
from collections.abc import Sequence

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.zfs.commands.commands import CommandHost, placeholder_command, rights_command
from orchestrator.engines.zfs.plan.hold_names import (
    cursor_bookmark_name,
    hold_bookmark_name,
    hold_tag,
    replication_target_id,
)
from tests.lab.common import Machine
from tests.lab.gates import let_through

pytestmark = pytest.mark.virtual
SHARED = ("ssh", "-oControlMaster=auto", "-oControlPath=/run/%C", "-oControlPersist=600")
SOURCE, PULLED, PUSHED = "tank/mine/photos", "vault/near/photos", "vault/in/new/photos"
_TARGETS = """[place.near]
dataset = "vault/near"
[place.new]
dataset = "ssh://root@master/vault/in/new"
"""
_JOB = """engine = "zfs"
source = "{source}"
target = "{target}"
schedule = "manual"
[retry]
attempts = 1
"""
# In the place of zfs. Within a gate, where nobody can get more rights, one whose words look like this stops itself: before it does what it was
# asked for, or once that is done and nobody was told.
_ZFS = """#!/bin/sh
[ -s /usr/local/lib/stops ] && read -r when words < /usr/local/lib/stops && grep -q "^NoNewPrivs:.1" /proc/$$/status || exec /usr/sbin/zfs "$@"
case " $* " in $words) ;; *) exec /usr/sbin/zfs "$@" ;; esac
[ "$when" = after ] || kill -STOP $$
/usr/sbin/zfs "$@"
status=$?
[ "$when" = before ] || kill -STOP $$
exit $status
"""
# Waits until zfs stopped there; then kills who asks (`sender`), and lets it go on; or what answers (`answer`); or all of the gate and the connection.
_KILLS = """#!/bin/sh
stopped() { ps -eo pid=,stat=,args= | awk '$2 ~ /^T/ && /\\/usr\\/local\\/sbin\\/zfs/ { print $1 }'; }
victim=$1
printf '%s %s\\n' "$2" "$3" > /usr/local/lib/stops
$line < /dev/null > /dev/null 2> /run/said &
asks=$!
until [ -n "$(stopped)" ]; do sleep 0.6; kill -0 $asks || exit 99; done
: > /usr/local/lib/stops
if [ "$victim" = sender ]; then
  kill -9 $asks
  kill -CONT $(stopped)
else
  for each in $(stopped); do pkill -9 -s "$(ps -o sid= -p "$each" | tr -d ' ')"; done
  [ "$victim" = answer ] || pkill -9 -f ' gate[ ]laptop|sshd(-session)?[:] root'
fi
wait $asks && exit 98
until [ -z "$(stopped)" ]; do sleep 0.1; done
"""
# The source, older copies of it, and a receive of a snapshot that is gone, whose link is dead.
_PREPARED = f"""zfs create -p {SOURCE}/deep && zfs create -p vault/near && zfs create -p vault/in && zfs snapshot -r {SOURCE}@a
zfs send {SOURCE}@a | zfs receive -u {PULLED} && zfs send {SOURCE}/deep@a | zfs receive -u {PULLED}/deep
head -c 300k /dev/urandom > /{SOURCE}/large && zfs snapshot {SOURCE}@gone
zfs send {SOURCE}@gone | head -c 250k > /run/gone; ((cat /run/gone; sleep 600) | exec zfs receive -s -u vault/in/cut) > /dev/null 2>&1 &
until pgrep -f "^zfs receive" > /dev/null; do sleep 0.1; done; sleep 1
zfs destroy {SOURCE}@gone && zfs snapshot -r {SOURCE}@b"""


def requests(machine: Machine) -> dict[str, tuple[str, ...]]:
    """Return the requests of a run that copies from the machine, by the script of each; what they write is what it would write itself."""
    pool = int(machine.sh("zpool get -Hpo value guid vault").text)
    guids = [int(each) for each in machine.sh(f"zfs get -Hpo value guid {SOURCE}@b {SOURCE}/deep@b").lines]
    target, both = replication_target_id(pool, Location(path=PULLED)), (SOURCE, f"{SOURCE}/deep")
    snapshots = tuple(f"{each}@b" for each in both)
    held = [hold_bookmark_name(target, guid) for guid in guids]
    marks = [cursor_bookmark_name(target, guid) for guid in guids]
    pairs = [(each, "@b", mark) for marked in (marks, held) for each, mark in zip(both, marked, strict=True)]
    return {
        "bookmarks.sh": ("tank", *(word for pair in pairs for word in pair)),
        "hold.sh": (hold_tag(target), *snapshots),
        "release.sh": (hold_tag(target), *snapshots),
        "destroy-bookmarks.sh": tuple(f"{each}#{mark}" for each, mark in zip(both, held, strict=True)),
        "zfs.sh": ("send", "-PLce", "-i", f"{SOURCE}@a", f"{SOURCE}@b"),
        "newest.sh": (SOURCE,), "points.sh": (SOURCE,), "list-properties.sh": (SOURCE,), "rights.sh": rights_command(Location(path=SOURCE)).argv[4:],
        "send-sizes.sh": ("-P", "-i", f"{SOURCE}@a", f"{SOURCE}@b"), "confirm.sh": (SOURCE, f"{SOURCE}@b"),
        "abort-receive.sh": ("vault/in/cut",),
    }  # fmt: skip


def line_of(script: str, words: Sequence[str]) -> str:
    """Return the line that asks the gate."""
    return shlex.join((*SHARED, "master", shlex.join(("sh", "-c", "id", script, *words))))


def kill(machine: Machine, victim: str, when: str, where: str, script: str, words: Sequence[str]) -> None:
    """Ask the gate, and kill the answer, or who asks, where its zfs stops."""
    kills = _KILLS.replace("$line", line_of(script, words))
    told = machine.sh(["sh", "-c", kills, "kills", victim, when, where], check=False, seconds=300)
    assert told.code == 0, (script, where, told, machine.sh("cat /run/said").text)


@pytest.mark.long
def test_a_request_that_is_killed_in_its_middle_leaves_nothing_behind(master: Machine) -> None:
    master.pool("tank")
    master.pool("vault")
    master.sh(_PREPARED)
    master.write("/usr/local/sbin/zfs", _ZFS, mode=0o755)
    let_through(master, "laptop", "--receives", "vault/in", "--sends", "tank/mine")
    for job, source, target in (("pull", f"ssh://root@master/{SOURCE}", "near"), ("push", SOURCE, "new")):
        master.job(job, _JOB.format(source=source, target=target), targets=_TARGETS)
    master.kitted("pull", "push", at=("near", "new"))
    asked = requests(master)
    (hanging,) = master.sh("pgrep -f '^zfs receive'").lines
    master.sh(line_of("end-receive.sh", (hanging, "vault/in/cut", "plain")))
    placeholder = placeholder_command("vault/in/new", CommandHost(), encryption=None).argv[1:]
    for victim, when, where, script, words in (
        ("gate", "before", "*program*", "bookmarks.sh", None), ("answer", "after", "*program*", "bookmarks.sh", None),
        ("sender", "after", "*hold*", "hold.sh", None), ("answer", "before", "*send*", "zfs.sh", None),
        ("answer", "before", "*release*deep@b*", "release.sh", None), ("answer", "before", "*destroy*deep#*", "destroy-bookmarks.sh", None),
        ("answer", "before", "*create*", "zfs.sh", placeholder), ("gate", "after", "*create*", "zfs.sh", placeholder),
        ("sender", "before", "*receive -A*", "abort-receive.sh", None),
    ):  # fmt: skip
        kill(master, victim, when, where, script, words or asked[script])
    for script in ("newest.sh", "points.sh", "list-properties.sh", "rights.sh", "send-sizes.sh", "confirm.sh"):
        kill(master, "answer", "before", "*", script, asked[script])
    ended = [master.poolferry("run", job, "--json", seconds=300) for job in ("pull", "push")]
    assert [each.json["outcome"] for each in ended] == ["done", "done"], ended
    stands = master.sh("zfs list -Hp -r -t all -o name,guid,userrefs,receive_resume_token tank vault").lines
    assert all(line.split("\t")[2:] in (["-", "-"], ["0", "-"]) for line in stands), stands
    guids = {name: guid for name, guid, *_ in (line.split("\t") for line in stands)}
    assert "vault/in/cut" not in guids
    for below, snapshot in ((below, snapshot) for below in ("", "/deep") for snapshot in "ab"):
        assert guids[f"{PULLED}{below}@{snapshot}"] == guids[f"{SOURCE}{below}@{snapshot}"]
    for below in ("", "/deep"):
        newest = guids[f"{SOURCE}{below}@b"]
        assert guids[f"{PUSHED}{below}@b"] == newest
        assert [guids[name] for name in guids if name.startswith(f"{SOURCE}{below}#")] == [newest] * 2, stands

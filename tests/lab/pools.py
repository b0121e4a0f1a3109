"""Pools in a machine: which snapshots they hold, old ones for them, their loss, and how what was on them comes back."""

from typing import Any

from tests.lab.common import Machine


def guids(machine: Machine, dataset: str) -> dict[str, str]:
    """By name below the dataset, the guid of each snapshot."""
    lines = machine.sh(["zfs", "list", "-Hp", "-r", "-t", "snapshot", "-o", "name,guid", dataset]).lines
    return dict(line.removeprefix(dataset).split("\t") for line in lines)


def create(machine: Machine, words: str) -> None:
    """`zpool create`; again, where udev came between it and the partitions that it had just made of a whole disk."""
    script = f"n=0; until zpool create -f {words}; do n=$((n+1)); [ $n -lt 5 ] || exit 1; udevadm settle; done"
    machine.sh(script, seconds=600)


def age(machine: Machine, *dated: tuple[int, str]) -> None:
    """Takes snapshots as if it were so many days ago, the oldest first."""
    lines = [f'date -s "@$((now - {days * 86400}))" >/dev/null && zfs snapshot "{name}"' for days, name in dated]
    script = "now=$(date +%s); set -e\n" + "\n".join(lines) + '\ndate -s "@$((now + 1))" >/dev/null\nzpool sync'
    machine.sh(script)


def restore(master: Machine, *more: str, to: str = "tank/photos") -> dict[str, Any]:
    """Return what the restore of job "photos" says in JSON; its exit code is that of its outcome."""
    ended = master.poolferry("restore", "run", "photos", "--to", to, "--json", *more, seconds=300)
    assert ended.out, ended
    told: dict[str, Any] = ended.json
    assert ended.code == {"done": 0, "failed": 1, "refused": 3, "interrupted": 1, "waiting": 75}[told["outcome"]], ended
    return told


def rebuild(master: Machine) -> None:
    """The pool is destroyed, and made anew with another layout."""
    disk = master.sh("zpool status -P tank | grep -o '/[^ ]*' | head -n 1; zpool destroy -f tank").text
    create(master, f"-o ashift=12 tank {disk.removesuffix('-part1')}")


def restore_pool(master: Machine, *more: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the answer of `restore pool tank`."""
    ended = master.poolferry("restore", "pool", "tank", "--json", *more, seconds=300)
    assert ended.out, ended
    return ended.code, ended.json


def step_states(told: dict[str, Any]) -> list[tuple[int, str]]:
    """Number and state of each step of an answer."""
    return [(step["step"], step["state"]) for step in told["steps"]]

"""A host is named in a hint as the job's runs reach it."""

from dataclasses import replace

import pytest

from orchestrator.domain.hint_phrases import name_disk, name_hosts
from orchestrator.domain.place import HERE, Host, Location
from tests.engines.rsync.builders import job

NAS = Host(name="nas", user="ann", port=2222)


@pytest.mark.parametrize(
    ("hint", "options", "told"),
    [
        ("`ssh HOST true` by hand", (), "`ssh -p 2222 ann@nas true` by hand"),
        ("`ssh HOST true` by hand", ("-i", "/root/a key"), "`ssh -i '/root/a key' -p 2222 ann@nas true` by hand"),
        (
            "end it: ssh -p 2222 ann@nas kill 7; or wait",
            ("-F", "x\\1"),
            "end it: ssh -F 'x\\1' -p 2222 ann@nas kill 7; or wait",
        ),
        ("ssh -p 2222 ann@nas", ("-v",), "ssh -v -p 2222 ann@nas"),
        ("ssh -p 2222 ann@nas.lan true", ("-v",), "ssh -p 2222 ann@nas.lan true"),
        ("ssh-copy-id to the host", ("-v",), "ssh-copy-id to the host"),
    ],
)
def test_a_host_is_named_with_the_jobs_options(hint: str, options: tuple[str, ...], told: str) -> None:
    made = job(source=Location(path="/a", host=NAS))
    made = replace(made, pipe=replace(made.pipe, ssh_options=options))
    assert name_hosts(hint, made) == told
    assert name_hosts(name_hosts(hint, made), made) == told


def test_without_a_host_a_hint_stays_as_it_is() -> None:
    assert name_hosts("`ssh HOST true`", job(target=Location(path="/a", host=HERE))) == "`ssh HOST true`"


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        ("or zfs rollback -r poolferry-red/photos@a", True),
        ("`zpool clear poolferry-red`", True),
        ("ssh HOST 'zfs rollback poolferry-red/a'", True),
        ("to lose it: poolferry run photos --aside", False),
        ("zfs rollback tank/photos@a; look into poolferry-red/photos", False),
        ("zfs rollback -r poolferry-redder/photos@a", False),
        ("poolferry disks attach red && zfs rename poolferry-red/a poolferry-red/b", False),
    ],
)
def test_commands_for_the_pool_of_a_disk_say_how_it_is_imported(hint: str, told: bool) -> None:
    """Seen: a rollback that was typed after the visit found no such pool, as the disk was switched off by then."""
    made = job(target=Location(path="poolferry-red/photos"))
    on_a_disk = replace(made, target=replace(made.target, disk="red"))
    more = "; that pool is imported between `poolferry disks attach red` and `poolferry disks eject red`"
    said = name_disk(hint, on_a_disk)
    assert said == (f"{hint}{more}" if told else hint)
    assert name_disk(said, on_a_disk) == said
    assert name_disk(hint, made) == hint, "no disk"

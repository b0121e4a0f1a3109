"""A host is named in a hint as the job's runs reach it."""

from dataclasses import replace

import pytest

from orchestrator.domain.hint_phrases import name_hosts
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

"""Places as scp and rsync write them become URLs, other texts do not; a host is written for a URL and for a shell."""

import pytest

from orchestrator.domain.place import Host, Location, parse_location, url_of_ssh_place


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("nas:/srv", "ssh://nas/srv"), ("root@nas:/srv/a b", "ssh://root@nas/srv/a%20b"), ("nas:tank/x", "ssh://nas/tank/x"),
        ("root@nas.lan:/a?b", "ssh://root@nas.lan/a%3Fb"), ("[fe80::1]:/srv", "ssh://[fe80::1]/srv"),
        ("/srv/a:b", None), ("./nas:x", None), ("ssh://nas/srv", None), ("tank/photos", None), ("nas:", None), ("", None),
    ],
)  # fmt: skip
def test_a_place_on_a_host(text: str, url: str | None) -> None:
    assert url_of_ssh_place(text) == url


@pytest.mark.parametrize(
    ("host", "shown", "typed"),
    [
        (Host(name="nas"), "nas", "ssh nas"), (Host(name="nas", user="ann", port=2222), "ann@nas:2222", "ssh -p 2222 ann@nas"),
        (Host(name="fe80::1", user="ann"), "ann@[fe80::1]", "ssh ann@fe80::1"), (Host(name="::1", port=22), "[::1]:22", "ssh -p 22 ::1"),
    ],
)  # fmt: skip
def test_a_host_is_reached_by_the_words_that_are_shown(host: Host, shown: str, typed: str) -> None:
    assert (str(host), host.ssh) == (shown, typed)
    place = Location(path="/srv/a b", host=host)
    assert parse_location(str(place)) == place

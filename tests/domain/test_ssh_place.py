"""Places as scp and rsync write them become URLs; other texts do not."""

import pytest

from orchestrator.domain.place import url_of_ssh_place


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

"""[notice.NAME] in poolferry.toml: what each kind takes, every mistake at once, and a schema of one mind with it."""

import tomllib
from datetime import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.machine import load_machine_config
from orchestrator.config.schema import machine_schema
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.machine import DigestOptions
from orchestrator.domain.notice import (
    CHANNEL_TYPES,
    AppriseChannel,
    MailChannel,
    NtfyChannel,
    PingChannel,
    WebhookChannel,
)
from orchestrator.domain.units import Seconds
from tests.config.schema import fits

GOOD = """
[digest]
day = "friday"
at = "18:30"
[notice.me]
kind = "mail"
to = ["me@example.org", "root"]
smtp = "mail.example.org:587"
user = "nas"
password-file = "mail-password"
states = ["late"]
[notice.phone]
kind = "ntfy"
topic = "@ntfy-topic"
jobs = ["photos"]
digest = false
[notice.desk]
kind = "webhook"
url = "https://example.org/hook"
[notice.chat]
kind = "apprise"
url = "@chat"
[notice.hc]
kind = "ping"
url = "https://hc.example.org/ping/KEY/{job}?create=1"
[notice.all]
kind = "ping"
url = "@all"
of = "protected"
every = "30m"
style = "plain"
"""


def mistakes(folder: Path, text: str) -> list[tuple[str, str, str]]:
    (folder / "poolferry.toml").write_text(text)
    with pytest.raises(DeclarationError) as caught:
        load_machine_config(str(folder))
    return [(each.key, each.what, each.expected) for each in caught.value.mistakes]


def test_each_kind_is_read(tmp_path: Path) -> None:
    (tmp_path / "poolferry.toml").write_text(GOOD)
    machine = load_machine_config(str(tmp_path))
    assert machine.digest == DigestOptions(day="friday", at=time(18, 30))
    assert machine.notice == (
        MailChannel(
            name="me", to=("me@example.org", "root"), smtp="mail.example.org:587", user="nas",
            password_file="mail-password", states=("late",),  # noqa: S106 - a file's name
        ),
        NtfyChannel(name="phone", topic="@ntfy-topic", jobs=("photos",), digest=False),
        WebhookChannel(name="desk", url="https://example.org/hook"),
        AppriseChannel(name="chat", url="@chat"),
        PingChannel(name="hc", url="https://hc.example.org/ping/KEY/{job}?create=1"),
        PingChannel(name="all", url="@all", of="protected", every=Seconds(1800), style="plain"),
    )  # fmt: skip
    assert fits(machine_schema(), tomllib.loads(GOOD))


MAIL = '[notice.me]\nkind = "mail"\nto = ["a@example.org"]\n'
HOST = 'smtp = "h:25"\n'


@pytest.mark.parametrize(
    ("text", "key", "what"),
    [
        ("notice = 3\n", "notice", "3 does not fit"),
        ("[notice]\nme = 3\n", "notice.me", "3 does not fit"),
        ('[notice."a b"]\nkind = "webhook"\nurl = "https://h/"\n', 'notice."a b"', "is no name for a channel"),
        ("[notice.me]\n", "notice.me.kind", "is missing"),
        ("[notice.me]\nkind = 3\n", "notice.me.kind", "3 does not fit"),
        ('[notice.me]\nkind = "mial"\n', "notice.me.kind", '"mial" does not fit'),
        ('[notice.me]\nkind = "mail"\n', "notice.me.to", "is missing"),
        ('[notice.me]\nkind = "mail"\nto = []\n', "notice.me.to", "is empty"),
        ('[notice.me]\nkind = "mail"\nto = ["-oQ/tmp"]\n', "notice.me.to", '"-oQ/tmp" does not fit'),
        (MAIL + 'sender = "a b"\n', "notice.me.sender", '"a b" does not fit'),
        (MAIL + 'smtp = "h:x"\n', "notice.me.smtp", '"h:x" does not fit'),
        (MAIL + 'states = ["up"]\n', "notice.me.states", '"up" does not fit'),
        (MAIL + 'topic = "https://h/t"\n', "notice.me.topic", "unknown key"),
        (MAIL + 'user = "x"\npassword-file = "y"\n', "notice.me.user", "is for a mail server, and none is given"),
        (MAIL + HOST + 'user = "x"\n', "notice.me.user", "there is no password-file"),
        (MAIL + HOST + 'password-file = "x"\n', "notice.me.password-file", "there is no user"),
        (
            MAIL + HOST + 'security = "none"\nuser = "x"\npassword-file = "y"\n',
            "notice.me.security", "the password would travel open",
        ),
        ('[notice.n]\nkind = "ntfy"\ntopic = "file:///x"\n', "notice.n.topic", '"file:///x" does not fit'),
        ('[notice.n]\nkind = "webhook"\nurl = "https://h/ x"\n', "notice.n.url", '"https://h/ x" does not fit'),
        ('[notice.n]\nkind = "apprise"\nurl = "no address"\n', "notice.n.url", '"no address" does not fit'),
        ('[notice.n]\nkind = "ping"\nurl = "https://h"\nevery = "1s"\n', "notice.n.every", '"1s" does not fit'),
        ('[digest]\nday = "mon"\n', "digest.day", '"mon" does not fit'),
    ],
)  # fmt: skip
def test_a_mistake_is_told_at_its_key(tmp_path: Path, text: str, key: str, what: str) -> None:
    assert (key, what) in [found[:2] for found in mistakes(tmp_path, text)]


def test_a_key_of_another_kind_is_told_as_such(tmp_path: Path) -> None:
    ((_, _, expected),) = mistakes(tmp_path, MAIL + 'token-file = "x"\n')
    assert expected == 'it only with kind "ntfy" or "webhook"'


def test_mistakes_of_several_channels_come_together(tmp_path: Path) -> None:
    found = mistakes(tmp_path, '[notice.a]\nkind = "x"\n[notice.b]\nkind = "mail"\n[notice.c]\nkind = "ntfy"\n')
    assert [key for key, *_ in found] == ["notice.a.kind", "notice.b.to", "notice.c.topic"]


@pytest.mark.parametrize(
    "change", [{"kind": "mial"}, {"to": 3}, {"to": ["a"], "topic": "https://h/t"}, {"states": ["up"]}, {"kind": None}]
)
def test_what_is_wrong_does_not_fit_the_schema(change: dict[str, Any]) -> None:
    table = {name: value for name, value in ({"kind": "mail", "to": ["a"]} | change).items() if value is not None}
    assert not fits(machine_schema(), {"notice": {"me": table}})


def test_the_schema_has_each_kind() -> None:
    channels = machine_schema()["properties"]["notice"]["additionalProperties"]["oneOf"]
    assert [each["properties"]["kind"]["const"] for each in channels] == list(CHANNEL_TYPES)


def test_a_job_that_is_not_there_is_told_where_all_jobs_are_known(tmp_path: Path) -> None:
    (tmp_path / "poolferry.toml").write_text(MAIL + 'jobs = ["photo", "mail"]\n')
    assert load_machine_config(str(tmp_path)).notice[0].jobs == ("photo", "mail")
    with pytest.raises(DeclarationError) as caught:
        load_machine_config(str(tmp_path), ["photos", "mail"])
    assert str(caught.value).endswith(
        ':4: notice.me.jobs: there is no job "photo", expected "photos", the nearest name'
    )
    assert load_machine_config(str(tmp_path), ["photo", "mail"]).notice

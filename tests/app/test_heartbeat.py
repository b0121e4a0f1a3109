"""Dead-man pings of runs and of all jobs, and the command `poolferry notices`."""

import json
import re
import subprocess
import time
from datetime import timedelta
from pathlib import Path

from orchestrator import compose
from tests.app.notices import Sick, by_mail, by_ntfy, declare, look, subjects
from tests.ferry import COMMAND, Ferry
from tests.peers import MailServer, WebPeer

LATE = 'late-after = "26h"\n'


def pings(web: WebPeer) -> list[str]:
    return [path for _, path, *_ in web.requests]


def ends(web: WebPeer) -> list[str]:
    """The pings at the end of runs: on a busy machine any run lasts long enough for one at its start."""
    return [path for path in pings(web) if not path.endswith("/start")]


def by_ping(web: WebPeer, more: str = "") -> str:
    return f'[notice.hc]\nkind = "ping"\nurl = "{web.url}/ping/{{job}}"\n{more}'


def test_each_end_of_a_run_pings_its_own_check(ferry: Ferry, web: WebPeer) -> None:
    photos, mails = Sick(ferry), Sick(ferry, "mails")
    declare(ferry, by_ping(web))
    for job, sick in ((photos, False), (mails, True), (photos, False)):
        job.run(sick=sick)
    assert ends(web) == ["/ping/photos", "/ping/mails/fail", "/ping/photos"]
    assert "the hook /usr/bin/test for before ended with 1" in next(
        body for _, path, _, body in web.requests if path == "/ping/mails/fail"
    )


def test_a_long_run_pings_its_start_first(ferry: Ferry, web: WebPeer) -> None:
    ferry.job("photos", '\n[hooks]\nbefore = ["/bin/sleep", "4"]\n')
    declare(ferry, by_ping(web))
    assert ferry.run("run", "photos").code == 0
    assert pings(web) == ["/ping/photos/start", "/ping/photos"]


def test_a_plain_monitor_hears_of_success_alone(ferry: Ferry, web: WebPeer) -> None:
    job = Sick(ferry)
    declare(ferry, by_ping(web, 'style = "plain"\n'))
    job.run(sick=True)
    job.run(sick=False)
    assert ends(web) == ["/ping/photos"]


def test_a_run_that_waits_pings_nothing(ferry: Ferry, web: WebPeer) -> None:
    ferry.job("photos", '\n[hooks]\nbefore = ["/bin/sh", "-c", "exit 75"]\n')
    declare(ferry, by_ping(web))
    assert ferry.run("run", "photos").code == 75
    assert ends(web) == []


def test_a_lost_ping_is_tried_again_unless_a_newer_one_says_else(ferry: Ferry, web: WebPeer) -> None:
    job = Sick(ferry)
    declare(ferry, by_ping(web))
    web.answers, web.spared = [500], "/start"
    job.run(sick=True)
    job.run(sick=False)
    assert ends(web) == ["/ping/photos/fail", "/ping/photos"]
    look(ferry, compose.now() + timedelta(hours=1))
    assert ends(web) == ["/ping/photos/fail", "/ping/photos"]
    web.answers = [500]
    job.run(sick=False)
    look(ferry, compose.now() + timedelta(minutes=2))
    assert ends(web)[2:] == ["/ping/photos", "/ping/photos"]


def test_everything_is_protected_is_pinged_each_hour_until_it_is_not(ferry: Ferry, web: WebPeer) -> None:
    job = Sick(ferry, more=LATE)
    declare(ferry, f'[notice.all]\nkind = "ping"\nof = "protected"\nurl = "{web.url}/all"\n')
    look(ferry, compose.now())
    assert pings(web) == [], "what has never run is not protected"
    job.run(sick=False)
    now = compose.now()
    for minutes in (0, 20, 40, 61, 100):
        look(ferry, now + timedelta(minutes=minutes))
    assert pings(web) == ["/all", "/all"]
    look(ferry, now + timedelta(hours=30))
    assert pings(web)[2:] == ["/all/fail"]
    assert "photos: late: the newest verified copy is 1 d 6 h old" in web.requests[2][3]


# The command


def test_the_command_lists_tests_and_sends(ferry: Ferry, server: MailServer, web: WebPeer) -> None:
    job = Sick(ferry)
    assert ferry.run("notices").out == "no notice was sent yet\n"
    assert ferry.run("notices", "send").code == 2
    declare(ferry, by_mail(server), by_ntfy(web))
    assert ferry.run("notices", "test", "me").code == 0
    assert subjects(server) == ["a test of me"]
    unknown = ferry.run("notices", "test", "you")
    assert unknown.code == 2
    assert "there is no [notice.you] in poolferry.toml; declared: me, phone" in unknown.err
    web.answers = [500, 500]
    failed = ferry.run("notices", "test", "phone", "--json")
    assert (failed.code, failed.value["delivered"]) == (1, False)
    job.run(sick=True)
    assert re.search(
        r"today .*  phone  queued: .* is failing.*\n    after 1 tries: 127.0.0.1: HTTP 500", ferry.run("notices").out
    )
    sent = ferry.run("notices", "send", "--json")
    assert (sent.code, sent.value["queued"]) == (0, []), "asked for by hand it does not wait for its time"
    assert "Rule: a job that becomes" in ferry.run("notices", "list", "--full").out


def test_send_notices_what_does_not_run_at_all(ferry: Ferry, server: MailServer) -> None:
    Sick(ferry, more='late-after = "1s"\n').run(sick=False)
    declare(ferry, by_mail(server))
    deadline = time.monotonic() + 20
    while not server.letters and time.monotonic() < deadline:
        assert ferry.run("notices", "send", "-q").out == ""
    assert subjects(server)[0].startswith("photos is late")


def test_a_run_imports_nothing_of_notices_where_nobody_wants_any(ferry: Ferry, server: MailServer) -> None:
    ferry.job()
    (ferry.config / "poolferry.toml").write_text("[clock]\nparallel = 3\n")
    told = subprocess.run(
        [COMMAND[0], "-X", "importtime", "-m", "orchestrator", "run", "photos"],
        env=ferry.variables(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    ).stderr  # fmt: skip
    assert "orchestrator.app.run_jobs" in told
    for name in ("orchestrator.notices", "orchestrator.app.notify", "domain.notice", "smtplib", "apprise"):
        assert name not in told, name


def test_the_facts_of_a_webhook_are_for_programs(ferry: Ferry, web: WebPeer) -> None:
    job = Sick(ferry)
    declare(ferry, f'[notice.desk]\nkind = "webhook"\nurl = "{web.url}/hook"\n')
    job.run(sick=True)
    told = json.loads(web.requests[0][3])
    assert (told["format"], told["kind"], told["about"]) == (1, "trouble", "photos")
    (notice,) = told["notices"]
    assert (notice["job"], notice["target"], notice["state"], notice["run"]) == (
        "photos",
        "photos-copies",
        "failing",
        1,
    )
    assert told["rule"].startswith("Rule: ")


def test_a_secret_lies_beside_the_configuration(ferry: Ferry, web: WebPeer) -> None:
    job = Sick(ferry)
    declare(ferry, '[notice.phone]\nkind = "ntfy"\ntopic = "@ntfy-topic"\n')
    Path(ferry.config / "ntfy-topic").write_text(f"{web.url}/s3cret\n")
    job.run(sick=True)
    assert pings(web) == ["/s3cret"]

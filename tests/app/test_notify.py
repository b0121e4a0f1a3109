"""Notices of the real command, at real peers: told once, repeated now and then, ended once; and each week."""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path

from orchestrator import compose
from tests.app.notices import Sick, by_mail, by_ntfy, declare, look, notices, states, subjects, where_of
from tests.ferry import Ferry
from tests.peers import MailServer, WebPeer, read

LATE = 'late-after = "26h"\n'


def test_a_failed_run_mails_once_and_its_end_mails_once(ferry: Ferry, server: MailServer) -> None:
    job = Sick(ferry)
    declare(ferry, by_mail(server))
    assert [job.run(sick=sick) for sick in (False, True, True, True, False, False)] == [0, 1, 1, 1, 0, 0]
    first, second = subjects(server)
    assert first.startswith("photos is failing: the last run failed: the hook /usr/bin/test")
    assert second == "photos is well again"
    assert states(ferry) == [("me", "trouble", "delivered"), ("me", "recovery", "delivered")]
    body = read(server.letters[0][2]).get_content()
    assert "what to do: mend the hook" in body
    assert "Rule: a job that becomes failing or late or incomplete or no-file is reported once" in body
    assert "`poolferry pause photos` silences it." in body


def test_one_failure_among_good_runs_wakes_nobody_two_do(ferry: Ferry, server: MailServer) -> None:
    job = Sick(ferry, more=LATE)
    declare(ferry, by_mail(server))
    assert [job.run(sick=sick) for sick in (False, True)] == [0, 1]
    assert ferry.run("status").code == 4
    assert server.letters == []
    job.run(sick=True)
    assert len(server.letters) == 1


def test_a_month_of_lateness_is_told_now_and_then(ferry: Ferry, server: MailServer) -> None:
    job = Sick(ferry, more=LATE)
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    job.run(sick=False)
    now = compose.now()
    for hour in range(0, 24 * 30, 3):
        assert look(ferry, now + timedelta(hours=hour)) == []
    told = subjects(server)
    assert told[0].startswith("photos is late: the newest verified copy is 1 d 3 h old; late-after is 1 d 2 h")
    assert [text.startswith("photos is still late: ") for text in told[1:]] == [True] * 5
    job.run(sick=False)
    assert subjects(server)[-1] == "photos is well again"


def test_jobs_that_change_at_one_look_come_in_one_message(ferry: Ferry, server: MailServer) -> None:
    for name in ("photos", "mails", "music"):
        Sick(ferry, name, more=LATE).run(sick=False)
    declare(ferry, by_mail(server), by_mail(server, "music-lover", 'jobs = ["music"]\n'))
    look(ferry, compose.now() + timedelta(hours=30))
    assert sorted(subjects(server)) == [
        "3 late: mails, music, photos",
        "music is late: the newest verified copy is 1 d 6 h old; late-after is 1 d 2 h",
    ]


def test_nothing_is_called_late_while_it_is_made_up_for(ferry: Ferry, server: MailServer) -> None:
    Sick(ferry, more=LATE).run(sick=False)
    declare(ferry, by_mail(server))
    now = compose.now() + timedelta(hours=60)
    look(ferry, now, awake=now - timedelta(minutes=50))
    assert server.letters == []
    look(ferry, now + timedelta(minutes=11), awake=now - timedelta(minutes=50))
    assert len(server.letters) == 1


def test_a_paused_job_is_silent_and_status_says_why(ferry: Ferry, server: MailServer) -> None:
    job = Sick(ferry)
    declare(ferry, by_mail(server))
    job.run(sick=False)
    with compose.open_history(where_of(ferry)) as history:
        history.due_runs.pause("photos", now=compose.now(), until=None, why="holidays")
    assert job.run(sick=True) == 1
    assert server.letters == []
    (told,) = ferry.run("status", "--json").value["jobs"]
    assert (told["state"], told["why"].split(";")[0]) == ("paused", "paused until it is resumed: holidays")
    assert ferry.run("status").code == 0
    with compose.open_history(where_of(ferry)) as history:
        history.due_runs.resume("photos")
    look(ferry, compose.now())
    assert len(server.letters) == 1


def test_a_job_that_is_declared_no_more_is_forgotten(ferry: Ferry, server: MailServer) -> None:
    job = Sick(ferry)
    Sick(ferry, "mails").run(sick=False)
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    job.run(sick=True)
    (ferry.config / "jobs" / "photos.toml").rename(ferry.root / "photos.toml")
    look(ferry, compose.now() + timedelta(days=2))
    assert len(server.letters) == 1
    with compose.open_history(where_of(ferry)) as history:
        assert history.notifications.told("me") == ()


# The digest


def test_the_digest_comes_each_week_with_the_counts_in_its_subject(ferry: Ferry, server: MailServer) -> None:
    Sick(ferry, "photos", more=LATE).run(sick=False)
    Sick(ferry, "mails").run(sick=False)
    declare(ferry, by_mail(server, more='states = ["failing"]\n'), '[digest]\nday = "wednesday"\nat = "06:00"\n')
    monday = datetime.fromisoformat("2027-01-04T12:00:00").astimezone()
    for hour in range(0, 24 * 15, 4):
        look(ferry, monday + timedelta(hours=hour))
    assert subjects(server) == ["1 up, 1 late, 0 failing"] * 2
    assert [each["about"] for each in notices(ferry)] == ["2027-01-06", "2027-01-13"]
    body = read(server.letters[0][2]).get_content()
    assert body.index("photos in photos-copies: late") < body.index("mails in mails-copies: up")
    assert "Rule: the digest is sent each week (wednesday 06:00), also when all is well" in body


def test_the_digest_says_which_channel_does_not_get_through(ferry: Ferry, server: MailServer, web: WebPeer) -> None:
    job = Sick(ferry)
    declare(ferry, by_mail(server), by_ntfy(web))
    web.answers = [500] * 99
    job.run(sick=True)
    look(ferry, compose.now() + timedelta(days=8))
    body = read(server.letters[-1][2]).get_content()
    assert "The channel phone does not get through: 127.0.0.1: HTTP 500" in body


# The hook for `late`

TELLS = """#!/bin/sh
echo "$POOLFERRY_EVENT $POOLFERRY_JOB $POOLFERRY_RUN $POOLFERRY_OUTCOME $POOLFERRY_WHY" >>"$0.heard"
cat >"$0.json"
"""


def late_hook(ferry: Ferry) -> Path:
    """A job whose hook for late keeps what it hears, beside the hook."""
    hook = ferry.root / "tells"
    hook.write_text(TELLS)
    hook.chmod(0o755)
    ferry.job("photos", f'{LATE}\n[hooks]\nlate = "{hook}"\n')
    return hook


def test_a_late_job_calls_its_hook_without_any_channel(ferry: Ferry) -> None:
    hook, heard = late_hook(ferry), ferry.root / "tells.heard"
    assert ferry.run("run", "photos").code == 0
    now = compose.now()
    for hours in (1, 25, 27, 30, 40):
        look(ferry, now + timedelta(hours=hours))
    assert heard.read_text() == "late photos 1 done the newest verified copy is 1 d 3 h old; late-after is 1 d 2 h\n"
    told = json.loads(hook.with_name("tells.json").read_text())
    assert (told["event"], told["report"]["run"], told["target"]) == ("late", 1, str(ferry.target()))
    (called,) = ferry.run("show", "1", "--json").value["hooks"]
    assert (called["event"], called["exit"]) == ("late", 0)
    look(ferry, now + timedelta(hours=27 + 24))
    assert ferry.run("run", "photos").code == 0
    assert len(heard.read_text().splitlines()) == 2


def test_a_hook_for_late_that_fails_is_said_and_harms_nothing(ferry: Ferry) -> None:
    late_hook(ferry).write_text("#!/bin/sh\nexit 3\n")
    ferry.run("run", "photos")
    assert look(ferry, compose.now() + timedelta(hours=27)) == [
        f"photos: the hook {ferry.root}/tells for late ended with 3"
    ]


def test_a_new_target_is_new_and_not_at_once_late(ferry: Ferry, server: MailServer) -> None:
    ferry.job("photos", LATE)
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    assert ferry.run("run", "photos").code == 0
    targets = ferry.config / "targets.toml"
    targets.write_text(targets.read_text() + f'[place.elsewhere]\npath = "{ferry.root}/elsewhere"\n')
    file = ferry.config / "jobs" / "photos.toml"
    file.write_text(file.read_text().replace('"photos-copies"', '"elsewhere"'))
    (told,) = ferry.run("status", "--json").value["jobs"]
    assert (told["state"], told["newest_verified"]) == ("new", None)
    look(ferry, compose.now() + timedelta(days=30))
    assert server.letters == []
    assert ferry.run("run", "photos").code == 0
    (told,) = ferry.run("status", "--json").value["jobs"]
    assert (told["state"], told["newest_verified"]["place"]) == ("up", "elsewhere")


def test_a_copy_found_broken_is_told_at_once_though_an_older_one_is_good(ferry: Ferry, server: MailServer) -> None:
    source = ferry.job("photos", LATE)
    declare(ferry, by_mail(server))
    assert ferry.run("run", "photos").code == 0
    (source / "c.txt").write_text("more\n")
    assert ferry.run("run", "photos").code == 0
    copy = next(ferry.target().glob("points/*/c.txt"))
    times = copy.stat()
    copy.write_text("mope\n")
    os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ferry.run("verify", "photos").code == 1
    (told,) = ferry.run("status", "--json").value["jobs"]
    assert told["newest_verified"] is not None
    (subject,) = subjects(server)
    assert subject.startswith("photos is failing: the last verification failed: ")

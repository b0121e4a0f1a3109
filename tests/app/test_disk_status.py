"""Notices of rotation sets: a disk that stays away by its own name, a set without a fresh copy, and their ends."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.app.disk_status import survey_members
from orchestrator.app.notify import survey_copy_status
from orchestrator.domain.rotation import DiskRecord, DiskState
from orchestrator.domain.run import Outcome
from tests.app.notices import by_mail, declare, look, subjects, where_of
from tests.ferry import Ferry
from tests.history.records import finish, report
from tests.peers import MailServer, read

IDENTITIES = {
    "red": "0b7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4e",
    "blue": "1c7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4f",
}
NOW = datetime.fromisoformat("2026-11-20T12:00:00+00:00")
DAY = timedelta(days=1)


class Disks:
    """Two disks of one set, known to history; jobs onto them."""

    def __init__(self, ferry: Ferry, limits: str, *jobs: str, more: str = "") -> None:
        self.ferry, self.jobs = ferry, jobs or ("photos",)
        for job in self.jobs:
            ferry.job(job, more)
            text = (ferry.config / "jobs" / f"{job}.toml").read_text().replace(f'"{job}-copies"', '"offsite"')
            (ferry.config / "jobs" / f"{job}.toml").write_text(text)
        disks = "".join(f'[disk.{name}]\nset = "offsite"\nidentity = "{IDENTITIES[name]}"\n' for name in IDENTITIES)
        self.declared = f"[set.offsite]\n{limits}{disks}"
        (ferry.config / "targets.toml").write_text(self.declared)
        with compose.open_history(where_of(ferry)) as history:
            for name, identity in IDENTITIES.items():
                history.disks.keep(known(name, identity))

    def and_job(self, name: str) -> None:
        """One more job, to a place of its own."""
        self.ferry.job(name)
        place = f'[place.{name}-copies]\npath = "{self.ferry.target(name)}"\n'
        (self.ferry.config / "targets.toml").write_text(place + self.declared)

    def filled(self, name: str, now: datetime, *jobs: str) -> None:
        """These jobs have a verified copy on the disk; all when none is named."""
        with compose.open_history(where_of(self.ferry)) as history:
            for job in jobs or self.jobs:
                run = finish(history, Outcome.DONE, job, now=now)
                history.point_current(job, name, f"{now:%Y-%m-%dT%H%M%SZ}", run, now)
                history.point_verified(job, name, f"{now:%Y-%m-%dT%H%M%SZ}", run, now)


def known(name: str, identity: str, **more: Any) -> DiskRecord:
    told = {
        "set": "offsite", "content": "ext4", "size": 1 << 41, "serial": "", "model": "", "wwn": "", "generation": 1,
        "written": 1, "enrolled": NOW, "standing": DiskState.ACTIVE,
    }  # fmt: skip
    return DiskRecord(disk=f"of-{name}", name=name, identity=identity, **{**told, **more})


def bodies(server: MailServer) -> list[str]:
    return [read(raw).get_content().replace("\r\n", "\n") for *_, raw in server.letters]


def test_a_disk_that_stays_away_is_one_notice_and_its_return_ends_it(ferry: Ferry, server: MailServer) -> None:
    disks = Disks(ferry, 'each-within = "30d"\n')
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    for name in IDENTITIES:
        disks.filled(name, NOW)
    for days in range(20, 60, 10):
        disks.filled("red", NOW + days * DAY)
        look(ferry, NOW + days * DAY)
    told = subjects(server)
    assert told[0] == "disk blue is late: no whole copy on disk blue for 40 d (limit 30 d)"
    assert [each.startswith("disk blue is still late: ") for each in told[1:]] == [True]
    first = bodies(server)[0]
    assert first.startswith("disk blue: late\n  no whole copy on disk blue for 40 d (limit 30 d)\n  what to do: ")
    assert "Please plug in disk blue" in first
    assert "Rule: a disk that becomes failing or late or incomplete or no-file is reported once" in first
    assert "`poolferry disks retire blue`" in first
    assert "poolferry pause" not in first
    disks.filled("blue", NOW + 61 * DAY)
    look(ferry, NOW + 61 * DAY)
    assert subjects(server)[2:] == ["disk blue is well again"]
    assert bodies(server)[2].startswith("disk blue: well again\n  it came in time\n")


def test_two_disks_are_two_troubles_in_one_message(ferry: Ferry, server: MailServer) -> None:
    disks = Disks(ferry, 'each-within = "30d"\n')
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    disks.filled("red", NOW)
    look(ferry, NOW + 31 * DAY)
    assert subjects(server) == ["2 late: disk red, disk blue"]
    disks.filled("red", NOW + 32 * DAY)
    look(ferry, NOW + 32 * DAY)
    assert "disk red is well again" in subjects(server)
    (retire,) = re.findall(r"missed no more after .* or `poolferry (disks retire blue)`", bodies(server)[0])
    assert ferry.run(*retire.split()).code == 0
    look(ferry, NOW + 50 * DAY)
    assert subjects(server)[-1] == "disk red is well again"


def test_a_set_without_a_fresh_copy_is_told_where_no_job_tells_it(ferry: Ferry, server: MailServer) -> None:
    disks = Disks(ferry, 'fresh-within = "7d"\n')
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    disks.filled("red", NOW)
    look(ferry, NOW + 7 * DAY)
    assert server.letters == []
    look(ferry, NOW + 8 * DAY)
    assert subjects(server) == [
        "the set offsite is late: the newest whole copy on the set offsite is 8 d old (limit 7 d)"
    ]
    disks.filled("blue", NOW + 8 * DAY)
    look(ferry, NOW + 9 * DAY)
    assert subjects(server)[1:] == ["the set offsite is well again"]


def test_one_cause_is_one_notice(ferry: Ferry, server: MailServer) -> None:
    disks = Disks(ferry, 'fresh-within = "7d"\n', more='late-after = "6d"\n')
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    disks.filled("red", NOW)
    for days in (5.0, 6.5, 7.2):
        look(ferry, NOW + days * DAY)
    (told,) = subjects(server)
    assert told.startswith("photos is late: the newest verified copy is 6 d 12 h old")


def test_what_a_disk_says_of_itself_is_one_notice_until_it_says_otherwise(ferry: Ferry, server: MailServer) -> None:
    Disks(ferry, "").filled("red", NOW)
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    for hours, said in enumerate(
        ("", "SMART says FAILED: a is at 9 (counted 1)", "SMART says FAILED: a is at 8 (counted 2)", None, "")
    ):
        now = NOW + timedelta(hours=hours)
        with compose.open_history(where_of(ferry)) as history:
            history.disks.visit_health(history.disks.begin_visit("of-red", now), said)
        look(ferry, now)
    assert subjects(server) == [
        "disk red is failing: SMART says FAILED: a is at 9 (counted 1)", "disk red is well again",
    ]  # fmt: skip
    (retire,) = re.findall(r"and then: poolferry (disks retire red)$", bodies(server)[0], re.MULTILINE)
    assert ferry.run(*retire.split()).code == 0
    with compose.open_history(where_of(ferry)) as history:
        assert {record.name: record.standing for record in history.disks.known()}["red"] is DiskState.RETIRED


def test_a_visit_that_would_take_too_long_is_told_while_it_goes_on_and_is_over_with_its_end(
    ferry: Ferry, server: MailServer
) -> None:
    Disks(ferry, "").filled("red", NOW)
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    look(ferry, NOW)
    with compose.open_history(where_of(ferry)) as history:
        visit = history.disks.begin_visit("of-red", NOW)
        history.disks.visit_is_slow(
            "red", "photos goes at 1.0 MiB/s, and 1.0 TiB are left: 12 d at this pace (limit 1 d)"
        )
    look(ferry, NOW + DAY / 24)
    assert subjects(server) == [
        "disk red is failing: photos goes at 1.0 MiB/s, and 1.0 TiB are left: 12 d at this pace (limit 1 d)"
    ]
    told = ferry.run("disks", "list")
    assert "offsite: disk red: photos goes at 1.0 MiB/s" in told.out
    assert ferry.run("status").code == 4
    with compose.open_history(where_of(ferry)) as history:
        history.disks.visit_ended(visit, jobs=["photos"], outcome="done", why="", released=NOW, safe=True)
    look(ferry, NOW + DAY / 12)
    assert subjects(server)[1:] == ["disk red is well again"]
    assert "photos goes at" in ferry.run("disks", "show", "red").out
    assert "photos goes at" not in ferry.run("disks", "list").out


def test_a_disk_that_only_looks_like_one_is_told_until_that_one_is_here(ferry: Ferry, server: MailServer) -> None:
    Disks(ferry, "").filled("red", NOW)
    declare(ferry, by_mail(server), '[digest]\nday = "never"\n')
    look(ferry, NOW)
    with compose.open_history(where_of(ferry)) as history:
        visit = history.disks.begin_visit("of-red", NOW)
        history.disks.visit_ended(
            visit, jobs=[], outcome="refused", why="a disk that looks like red", released=None, safe=False
        )
    look(ferry, NOW + DAY / 24)
    assert subjects(server) == ["disk red is failing: a disk that looks like red"]
    assert "if it is the disk itself after all: poolferry disks readopt red" in bodies(server)[0]
    assert "offsite: disk red: a disk that looks like red" in ferry.run("disks", "list").out
    assert ferry.run("status").code == 4
    with compose.open_history(where_of(ferry)) as history:
        visit = history.disks.begin_visit("of-red", NOW)
        history.disks.visit_ended(visit, jobs=["photos"], outcome="done", why="", released=NOW, safe=True)
    look(ferry, NOW + DAY / 12)
    assert subjects(server)[1:] == ["disk red is well again"]


@pytest.mark.parametrize("job", ["photos", "mails"])
def test_a_channel_of_any_job_of_the_set_hears_of_its_disks(ferry: Ferry, server: MailServer, job: str) -> None:
    disks = Disks(ferry, 'each-within = "30d"\n', "mails", "photos")
    disks.and_job("music")
    others = by_mail(server, "other", 'jobs = ["music"]\n')
    declare(ferry, by_mail(server, more=f'jobs = ["{job}"]\n'), others, '[digest]\nday = "never"\n')
    disks.filled("red", NOW + 20 * DAY)
    look(ferry, NOW + 31 * DAY)
    assert subjects(server) == ["disk blue is late: no whole copy on disk blue for 31 d (limit 30 d)"]


def test_a_disk_without_the_copy_of_one_job_is_not_whole_for_the_other(ferry: Ferry, server: MailServer) -> None:
    disks = Disks(ferry, 'each-within = "30d"\n', "mails", "photos")
    declare(ferry, by_mail(server, more='jobs = ["mails"]\n'), '[digest]\nday = "never"\n')
    disks.filled("red", NOW)
    disks.filled("blue", NOW + 20 * DAY)
    disks.filled("red", NOW + 20 * DAY, "mails")
    look(ferry, NOW + 31 * DAY)
    assert subjects(server) == ["disk red is late: no whole copy on disk red for 31 d (limit 30 d)"]


def test_what_a_notice_names_is_still_known_when_more_runs_have_waited(ferry: Ferry) -> None:
    disks, named = Disks(ferry, ""), list[int]()
    (job,) = compose.read_configuration(where_of(disks.ferry)).jobs
    for day in range(4):
        with compose.open_history(where_of(ferry)) as history:
            run = finish(history, Outcome.WAITING, "photos", now=NOW + day * DAY)
            history.fold_waits(report(run, "photos", Outcome.WAITING))
            (seen, *_) = survey_members([job], history.views, NOW + day * DAY)
            named += [seen.run or 0, survey_copy_status(job, history.views, now=NOW + day * DAY, pauses={}).run or 0]
    with compose.open_history(where_of(ferry)) as history:
        assert [history.views.run(run) is not None for run in named] == [True] * 8
        assert len(set(named)) == 1, "the first of those that wait for the same"
        failed = finish(history, Outcome.FAILED, "photos", now=NOW + 5 * DAY)
        assert survey_copy_status(job, history.views, now=NOW + 5 * DAY, pauses={}).run == failed

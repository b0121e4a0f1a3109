"""Copies whose job has no file any more: each that says how jobs stand says them, until the file is back, or the job is said to be over."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from orchestrator import compose
from orchestrator.app.cached_settings import CachedSettings
from orchestrator.app.fleet_beat import _judge
from orchestrator.app.month_report import report_month
from orchestrator.planners.health import BAD
from tests.app.notices import by_mail, declare, look, subjects, where_of
from tests.ferry import Ferry
from tests.peers import MailServer, read
from tests.web.sites import client, text_of


def _bad_states(ferry: Ferry) -> dict[str, str]:
    """Return the jobs that need a person by Prometheus's numbers, with their state."""
    lines = [line for line in ferry.run("metrics").out.splitlines() if line.startswith("poolferry_job_state{")]
    told = [line.partition('backup_job="')[2].split('"')[0:3:2] for line in lines if line.endswith(" 1.0")]
    return {job: state for job, state in told if state in BAD}


def _page(settings: CachedSettings) -> Callable[[str], str]:
    asked = client(settings)
    return lambda path: text_of(asked.get(path).text)


def test_all_that_says_how_jobs_stand_says_stray_copies(ferry: Ferry, server: MailServer) -> None:
    for job in ("photos", "mails"):
        ferry.job(job)
        assert ferry.run("run", job).code == 0
    declare(ferry, by_mail(server), '[digest]\nday = "wednesday"\nat = "06:00"\n')
    settings, now = CachedSettings(config=str(ferry.config), state=str(ferry.state)), datetime.now(UTC)
    page, file, away = _page(settings), ferry.config / "jobs" / "photos.toml", ferry.root / "photos.toml"
    look(ferry, now)
    assert (ferry.run("status").code, _bad_states(ferry), subjects(server)) == (0, {}, [])

    file.rename(away)
    look(ferry, now)
    said = f"it has no file any more, so nobody makes new copies; those in {ferry.target()} stay"
    assert (ferry.run("status").code, _bad_states(ferry)) == (4, {"photos": "no-file"})
    assert [each[:60] for each in subjects(server)] == [f"photos is no-file: {said}"[:60]]
    body = read(server.letters[0][2]).get_content()
    assert "what to do: put jobs/photos.toml back; or, if the job is over: `poolferry end photos`" in body
    assert not [each for each in ("poolferry status photos", "poolferry pause") if each in body], "which would not help"
    front = page("/")
    assert ("1 of 2 jobs needs you" in front, said in front) == (True, True)
    assert "refused" not in page("/runs?job=photos")
    assert said in page("/report")
    local = now.astimezone()
    (stray,) = report_month(settings, local.year, local.month, now).stray
    assert (stray.job, stray.sentence) == ("photos", said)
    with compose.open_history(where_of(ferry)) as history:
        beats = {each.job: each for each in _judge(settings.configuration().jobs, history, now)}
    assert (beats["photos"].state, beats["photos"].why, beats["mails"].state) == ("no-file", said, "up")
    look(ferry, now + timedelta(days=8))
    assert any("1 up, 0 late, 0 failing, 1 no-file" in each for each in subjects(server)), subjects(server)

    away.rename(file)
    look(ferry, now + timedelta(days=8))
    assert subjects(server)[-1] == "photos is well again"
    assert (ferry.run("status").code, _bad_states(ferry)) == (0, {})
    file.rename(away)
    assert ferry.run("end", "photos").code == 0
    before = len(server.letters)
    look(ferry, now + timedelta(days=8))
    assert (ferry.run("status").code, _bad_states(ferry), len(server.letters)) == (0, {}, before)
    assert (
        "All promises are kept 1 job: each newest copy is verified; no limit is set (late-after), so none is ever late."
        in page("/")
    )


def test_a_file_that_was_renamed_by_hand_is_named(ferry: Ferry) -> None:
    """Both names get one advice, and it ends the trouble: the job goes on with its copies."""
    ferry.job("photos")
    assert ferry.run("run", "photos").code == 0
    file = (ferry.config / "jobs/photos.toml").rename(ferry.config / "jobs/pictures.toml")
    said = 'known-as = "photos" before'
    refused = ferry.run("run", "pictures")
    assert (refused.code, said in refused.out) == (3, True), refused
    told = ferry.run("status")
    assert (told.code, f"{file} copies the same: if it is this job, write {said}" in told.out) == (
        4,
        True,
    ), told
    file.write_text(f'known-as = "photos"\n{file.read_text()}')
    assert ferry.run("run", "pictures").code == 0
    assert "has no file any more" not in (ended := ferry.run("status")).out, ended


def test_the_last_job_of_all_can_be_over(ferry: Ferry) -> None:
    """Seen: without any job file the configuration has a mistake, and the owner could not say that she meant it."""
    ferry.job("photos")
    assert ferry.run("run", "photos").code == 0
    file = ferry.config / "jobs" / "photos.toml"
    text = file.read_text()
    file.unlink()
    assert ferry.run("end", "mails").code == 2
    ended = ferry.run("end", "photos")
    assert (ended.code, ended.out) == (0, "photos: is over; its copies stay\n"), ended.err
    broken = ferry.config / "jobs" / "broken.toml"
    for content in (b"engine =", b"\xff\xfe"):
        broken.write_bytes(content)
        assert ferry.run("end", "photos").code == 2, "a mistake in a file is still one"
    broken.unlink()
    broken.symlink_to("nowhere")
    assert ferry.run("end", "--undo", "photos").code == 2
    broken.unlink()
    (ferry.config / "jobs").rename(ferry.config / "unmounted")
    assert ferry.run("end", "--undo", "photos").code == 2, "its files may only be out of sight"
    (ferry.config / "unmounted").rename(ferry.config / "jobs")
    ferry.job("other")
    assert "photos" not in ferry.run("status").out
    file.write_text(text)
    assert "is not over" in ferry.run("end", "photos").err

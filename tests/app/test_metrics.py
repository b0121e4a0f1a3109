"""Numbers for Prometheus: what they tell, that they are well formed, and that they arrive whole."""

import os
import re
import shutil
import stat
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics import parser as strict
from prometheus_client.parser import text_string_to_metric_families

from orchestrator.domain.due import DueRun
from orchestrator.domain.notice import Message, NoticeType
from orchestrator.history.store import open_history
from tests.app.prometheus import PROMTOOL
from tests.cli.import_samples import imported
from tests.ferry import Ferry

Labels = tuple[tuple[str, str], ...]


def numbers(text: str) -> dict[tuple[str, Labels], float]:
    """Each sample by its name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def told(ferry: Ferry) -> dict[tuple[str, Labels], float]:
    """Return what the command says now."""
    ended = ferry.run("metrics")
    assert ended.code == 0, ended.err
    return numbers(ended.out)


def of(found: dict[tuple[str, Labels], float], name: str, job: str = "photos", **labels: str) -> float | None:
    """One number of a job; None: it is not told."""
    return found.get((f"poolferry_{name}", tuple(sorted({"backup_job": job, **labels}.items()))))


def test_a_job_that_never_ran_has_no_numbers_that_nobody_knows(ferry: Ferry) -> None:
    ferry.job(more='late-after = "26h"\n')
    found = told(ferry)
    assert of(found, "job_state", state="new") == 1
    assert of(found, "job_late_after_seconds") == 26 * 3600
    assert of(found, "job_restore_points", place="photos-copies") == 0
    names = {name for name, _ in found}
    assert {name for name in names if "timestamp" in name} == {"poolferry_look_timestamp_seconds"}
    assert not {name for name in names if "last_run" in name or name.endswith("_total")}


def test_what_runs_leave(ferry: Ferry) -> None:
    source = ferry.job()
    for text in ("one", "two"):
        (source / "b.bin").write_text(text)
        assert ferry.run("run", "photos").code == 0
    assert ferry.run("run", "photos").code == 0
    shutil.rmtree(source)
    assert ferry.run("run", "photos").code == 3
    found = told(ferry)
    assert of(found, "job_state", state="failing") == 1
    assert of(found, "job_state", state="up") == 0
    assert of(found, "job_last_run_outcome", outcome="refused") == 1
    assert of(found, "job_last_run_outcome", outcome="done") == 0
    assert of(found, "job_failures") == 1
    assert of(found, "job_restore_points", place="photos-copies") == 2
    assert of(found, "job_unsound_restore_points", place="photos-copies") == 0
    assert of(found, "runs_total", outcome="done") == 2
    assert of(found, "runs_total", outcome="nothing-to-do") == 1
    assert (of(found, "moved_bytes_total", outcome="done") or 0) > 10
    look = found["poolferry_look_timestamp_seconds", ()]
    for name in ("job_last_run_timestamp_seconds", "job_last_success_timestamp_seconds"):
        assert 0 <= look - (of(found, name) or 0) < 60, name
    assert 0 <= look - (of(found, "job_newest_copy_timestamp_seconds", place="photos-copies") or 0) < 60


def test_a_reading_is_told_and_what_it_found(ferry: Ferry) -> None:
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    assert of(told(ferry), "job_last_verified_timestamp_seconds") is None
    assert ferry.run("verify", "photos").code == 0
    assert of(told(ferry), "job_last_verified_timestamp_seconds") is not None
    (kept,) = ferry.target().glob("points/*/b.bin")
    before = kept.stat()
    kept.write_bytes(b"x" * before.st_size)
    os.utime(kept, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ferry.run("verify", "photos").code == 1
    assert of(told(ferry), "job_unsound_restore_points", place="photos-copies") == 1


def test_of_a_job_that_is_gone_only_that_it_has_no_file_is_told_until_it_is_over(ferry: Ferry) -> None:
    ferry.job()
    ferry.job("mail")
    assert ferry.run("run", "photos", "mail").code == 0
    (ferry.config / "jobs" / "mail.toml").unlink()
    found = told(ferry)
    assert {name for name, labels in found if dict(labels).get("backup_job") == "mail"} == {"poolferry_job_state"}
    assert of(found, "job_state", "mail", state="no-file") == 1
    assert ferry.run("end", "mail").code == 0
    assert {dict(labels).get("backup_job") for _, labels in told(ferry)} == {None, "photos"}


def test_a_job_that_rests(ferry: Ferry) -> None:
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    assert ferry.run("pause", "photos").code == 0
    assert of(told(ferry), "job_state", state="paused") == 1


def test_what_is_due_and_what_nobody_was_told(ferry: Ferry) -> None:
    ferry.job(more='daily = "02:30"\n')
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    with open_history(str(ferry.state / "history.sqlite")) as history:
        due_run = DueRun(job="photos", scheduled_at=noon, newest=noon, slots=1, why="late", noted=noon, after_run=0)
        history.due_runs.write(due_runs=[due_run, replace(due_run, job="gone")])
        message = Message(kind=NoticeType.TROUBLE, about="", made_at=noon, subject="late", body="photos is late")
        history.notifications.queue("admin", message)
    found = told(ferry)
    assert of(found, "job_due_since_timestamp_seconds") == noon.timestamp()
    assert of(found, "job_due_since_timestamp_seconds", "gone") is None
    assert found["poolferry_notices_queued", ()] == 1


def all_told(ferry: Ferry) -> str:
    """The whole text of a machine on which a bit of everything happened."""
    ferry.job(more='late-after = "26h"\n')
    ferry.job("mail", 'daily = "02:30"\n')
    for command in ("run", "verify"):
        assert ferry.run(command, "photos").code == 0
    return ferry.run("metrics").out


# Source: prometheus.io/docs/practices/naming and .../instrumenting/writing_exporters.
_NOT_BASE = "minutes hours days milliseconds ms kilobytes megabytes kb mb bits percent".split()
_RESERVED = ("_count", "_sum", "_bucket", "_info_total", "_gauge", "_counter")


def test_it_is_well_formed_and_named_as_prometheus_wants_it(ferry: Ferry) -> None:
    text = all_told(ferry)
    lines = [line.split(" ", 3) for line in text.splitlines() if line.startswith("#")]
    assert [kind for _, kind, *_ in lines] == ["HELP", "TYPE"] * (len(lines) // 2)
    assert [one[2] for one in lines[::2]] == [other[2] for other in lines[1::2]]
    assert len({one[2] for one in lines}) == len(lines) // 2
    families = list(text_string_to_metric_families(text))
    assert len(families) == len(lines) // 2
    samples = [(each.name, tuple(sorted(each.labels.items()))) for family in families for each in family.samples]
    assert len(set(samples)) == len(samples) > 20
    for family, (_, _, name, kind) in zip(families, lines[1::2], strict=True):
        assert re.fullmatch(r"poolferry(_[a-z]+)+", name), name
        assert family.documentation.endswith("."), name
        assert name.endswith("_total") == (kind == "counter"), name
        assert not set(name.split("_")) & set(_NOT_BASE), name
        assert not name.endswith(_RESERVED), name
        assert {each.name for each in family.samples} <= {name}, name


def test_it_is_open_metrics_too(ferry: Ferry) -> None:
    """Use that format's own parser, the strict one: names, units, escapes and the order of all lines."""
    families = text_string_to_metric_families(all_told(ferry))
    ours = CollectorRegistry()
    ours.register(Given(list(families)))
    text = openmetrics.generate_latest(ours).decode()  # type: ignore[no-untyped-call]
    found = strict.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    names = [family.name for family in found]
    assert len(names) == len(set(names)) > 15


class Given:
    """Metrics to write."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        """All of it."""
        return self._families


def test_promtool_has_nothing_to_say(ferry: Ferry) -> None:
    text = all_told(ferry)
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_a_run_writes_the_file_that_is_asked_for(ferry: Ferry, tmp_path: Path) -> None:
    ferry.job()
    file = tmp_path / "poolferry.prom"
    (ferry.config / "poolferry.toml").write_text(f'[metrics]\ntextfile = "{file}"\n')
    assert ferry.run("run", "photos").code == 0
    assert of(numbers(file.read_text()), "runs_total", outcome="done") == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert ferry.run("run", "photos").code == 0
    assert of(numbers(file.read_text()), "runs_total", outcome="nothing-to-do") == 1
    assert [path.name for path in tmp_path.glob("*.prom*")] == ["poolferry.prom"]


def test_a_file_that_cannot_be_written_harms_no_run(ferry: Ferry, tmp_path: Path) -> None:
    ferry.job()
    (ferry.config / "poolferry.toml").write_text(f'[metrics]\ntextfile = "{tmp_path}/nowhere/poolferry.prom"\n')
    ended = ferry.run("run", "photos")
    assert ended.code == 0
    assert "could not be written: No such file" in ended.err


def test_a_file_by_hand_and_json(ferry: Ferry, tmp_path: Path) -> None:
    ferry.job()
    file = tmp_path / "by-hand.prom"
    assert ferry.run("metrics", "--textfile", str(file)).out == ""
    assert of(numbers(file.read_text()), "job_state", state="new") == 1
    assert numbers(ferry.run("metrics", "--json").value["metrics"]).keys() == numbers(file.read_text()).keys()


def test_without_the_extra_it_says_what_to_install(ferry: Ferry, tmp_path: Path) -> None:
    ferry.job()
    hidden = tmp_path / "hidden" / "prometheus_client"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError\n")
    path = f"{hidden.parent}:{ferry.variables()['PYTHONPATH']}"
    ended = ferry.run("metrics", PYTHONPATH=path)
    assert ended.code == 1
    assert "prometheus_client, which is not installed" in ended.err
    assert "poolferry[metrics]" in ended.err
    (ferry.config / "poolferry.toml").write_text(f'[metrics]\ntextfile = "{tmp_path}/a.prom"\n')
    run = ferry.run("run", "photos", PYTHONPATH=path)
    assert run.code == 0
    assert "poolferry[metrics]" in run.err


def test_a_run_imports_nothing_of_it_unasked(ferry: Ferry) -> None:
    ferry.job()
    assert "prometheus_client" not in imported(ferry, "run", "photos")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('textfile = "poolferry.prom"', "an absolute path that ends in .prom"),
        ('textfile = "/var/poolferry.txt"', "an absolute path that ends in .prom"),
        ('listen = "9742"', "an address and a port"),
        ('listen = "127.0.0.1:99999"', "an address and a port"),
        ('listen = "unix:metrics.sock"', "an address and a port"),
    ],
)
def test_mistakes_are_told(ferry: Ferry, line: str, expected: str) -> None:
    ferry.job()
    (ferry.config / "poolferry.toml").write_text(f"[metrics]\n{line}\n")
    assert expected in ferry.run("check").err + ferry.run("run", "photos").err

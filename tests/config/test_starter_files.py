"""Test what `poolferry init` writes loads at once, for any path."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.config.load import load_configuration
from orchestrator.config.starter_files import quote_location, starter_files
from orchestrator.domain.job import KeepRules, Limit
from orchestrator.domain.place import parse_location
from tests.config.given import written
from tests.config.shipped import RSYNC


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/home", "/backup/home"),
        ("/srv/a b\"c\\d'e#f", "/mnt/ü/\n\t"),
        ("/srv/old\udcff%41", "ssh://root@nas:2222/copies"),
        ("/srv/a://b", "/mnt/c%20d"),
    ],
)
def test_it_loads_as_it_is_written(tmp_path: Path, source: str, target: str) -> None:
    files = starter_files(source, target)
    job = load_configuration(written(tmp_path, files), RSYNC).job("home")
    assert job.source.path == source
    assert str(job.target.location) == target
    assert (job.schedule, job.keep) == ("cron 30 2 * * *", KeepRules(daily=14, weekly=8, monthly=12))
    assert job.guard.max_deleted == Limit(number=30, percent=True)


CHOICE = re.compile(r"# ([a-z-]+ = (?:\[.*?\]|\"[^\"]*\"|\d+))")


@pytest.mark.parametrize(
    "line", [line for line in starter_files("/a", "/b")["jobs/home.toml"].split("\n") if CHOICE.match(line)]
)
def test_each_choice_in_its_remarks_loads_too(tmp_path: Path, line: str) -> None:
    files = dict(starter_files("/home", "/backup/home"))
    choice = CHOICE.sub(r"\1", line).replace("another-job", "home-too")
    text = files["jobs/home.toml"].replace(line, choice)
    when = choice.split(" ")[0] in ("daily", "every", "on")
    files["jobs/home.toml"] = re.sub("^schedule", "# schedule", text, flags=re.MULTILINE) if when else text
    files["jobs/home-too.toml"] = 'engine = "rsync"\nsource = "/home"\ntarget = "too"\n'
    files["targets.toml"] += '[place.too]\npath = "/backup/too"\n'
    plain = load_configuration(
        written(tmp_path / "plain", files | {"jobs/home.toml": starter_files("/home", "/b")["jobs/home.toml"]}), RSYNC
    )
    assert load_configuration(written(tmp_path / "chosen", files), RSYNC).job("home") != plain.job("home")


def test_every_file_is_remarked_and_short_lined() -> None:
    files = starter_files("/home", "/backup/home")
    assert set(files) == {"targets.toml", "jobs/home.toml", "hooks/README.md"}
    assert all(text.startswith("# ") and text.endswith("\n") for text in files.values())
    assert max(len(line) for text in files.values() for line in text.splitlines()) <= 120


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), st.binary())
@example(text="", raw=b'\xff\x7f\x1f"\\')
def test_any_path_comes_back(text: str, raw: bytes) -> None:
    tail = text + raw.replace(b"\x00", b"").decode("utf-8", "surrogateescape")
    path = "/x" + tail.rstrip("/")
    assert parse_location(tomllib.loads(f"a = {quote_location(path)}")["a"]).path == path

"""zrepl's files of both sides."""

from pathlib import Path

import pytest

from orchestrator.config.migrate.program_calls import ImportedSettings
from orchestrator.config.migrate.zrepl import import_zrepl, parse_grid
from tests.config.migrate.imported import ENGINES, ImportedFiles, imported

PUSH = """\
jobs:
- name: prod_to_backups
  type: push
  connect:
    type: ssh+stdinserver
    host: backups.example.org
    user: root
    port: 2222
    identity_file: /etc/zrepl/ssh/identity
  filesystems:
    "zroot<": true
    "zroot/var/tmp<": false
    "tank/vm": true
  send:
    encrypted: true
    bandwidth_limit: {max: 20 MiB}
  snapshotting:
    type: periodic
    interval: 10m
    prefix: zrepl_
  pruning:
    keep_sender:
    - type: not_replicated
    - type: grid
      grid: 1x1h(keep=all) | 24x1h | 14x1d
      regex: "^zrepl_.*"
    - {type: regex, negate: true, regex: "^zrepl_"}
    keep_receiver:
    - type: grid
      grid: 30x1d | 6x30d
"""
SINK = """\
jobs:
- name: sink
  type: sink
  serve: {type: stdinserver, client_identities: ["prod"]}
  root_fs: storage/zrepl
"""
PULL = """\
jobs:
- type: pull
  name: pull
  root_fs: tank/pulled
  interval: 1h
  connect: {type: tls, address: "nas.lan:8888"}
  pruning: {keep_receiver: [{type: grid, grid: 7x1d}]}
"""
SOURCE = """\
jobs:
- type: source
  name: source
  serve: {type: tls, listen: ":8888"}
  filesystems: {"data/a<": true}
  snapshotting: {type: manual}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(folder: Path, *texts: str) -> ImportedFiles:
    files = [(f"{number}.yml", text) for number, text in enumerate(texts, start=1)]
    return imported(import_zrepl(ImportedSettings(files=files), ENGINES), folder)


def test_a_push_with_the_file_of_its_sink(folder: Path) -> None:
    made = run(folder, PUSH, SINK)
    assert made.lost == []
    assert made.jobs["zroot"] == {
        "engine": "zfs", "source": "zroot", "target": "backups.example.org-storage-zrepl-prod", "every": "10m", "late-after": "2h",
        "zfs": {"recursive": True, "raw": "yes", "exclude": ["var/tmp"]}, "snapshots": {"hourly": 25, "daily": 16},
        "keep": {"daily": 30, "monthly": 7},
        "pipe": {"rate-limit": "20M", "ssh-options": ["-i", "/etc/zrepl/ssh/identity"]},
    }  # fmt: skip
    vm = made.jobs["vm"]
    assert (vm["zfs"]["recursive"], vm["snapshots"]["recursive"]) == (False, False)
    assert made.places[vm["target"]] == "ssh://root@backups.example.org:2222/storage/zrepl/prod/tank"
    assert any(line.startswith("2.yml:2: is the sink") for line in made.told)


def test_a_pull_with_the_file_of_its_source(folder: Path) -> None:
    made = run(folder, PULL, SOURCE)
    job = made.jobs["a"]
    assert (job["source"], job["every"], job["keep"]) == ("ssh://root@nas.lan/data/a", "1h", {"daily": 7})
    assert made.places[job["target"]] == "tank/pulled/data"
    assert made.lost == []


def test_both_sides_on_one_machine(folder: Path) -> None:
    local = PUSH.replace("ssh+stdinserver", "local\n    listener_name: x\n    client_identity: me")
    sink = SINK.replace('stdinserver, client_identities: ["prod"]', "local, listener_name: x")
    made = run(folder, local + sink.partition("\n")[2])
    assert made.places["storage-zrepl-me"] == "storage/zrepl/me"


def test_snapshots_alone(folder: Path) -> None:
    snap = """\
jobs:
- type: snap
  filesystems: {"data<": true, "data/scratch<": false}
  snapshotting: {type: cron, cron: "0 3 * * *"}
  pruning: {keep: [{type: grid, grid: "7x1d | 4x7d"}, {type: last_n, count: 3}]}
"""
    made = run(folder, snap)
    assert made.jobs["data-snapshots"] == {
        "engine": "sanoid", "source": "data", "schedule": "0 3 * * *", "late-after": "26h",
        "snapshots": {"daily": 7, "weekly": 5}, "sanoid": {"exclude": ["scratch"]},
    }  # fmt: skip
    assert len(made.lost) == 1
    assert "line 5 keeps by last_n 3" in made.lost[0]


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ((PUSH,), "1.yml:2: is not carried over: where the copies lie (root_fs) stands in the sink"),
        ((PULL,), "1.yml:2: is not carried over: what is copied (filesystems) stands in the source"),
        ((PUSH, SINK, SINK), "2 jobs of the type sink"),
        ((PUSH, SINK.replace('["prod"]', '["a", "b"]')), "2 client identities"),
        ((PUSH.replace('"zroot<"', '"<"'), SINK), "every pool"),
        ((PUSH.replace("host: backups.example.org", "host: -oProxyCommand=x"), SINK), "names no host"),
        ((PUSH.replace("type: push", "type: other"), SINK), 'its type "other"'),
        ((PUSH.replace("interval: 10m", "interval: soon"), SINK), "its interval soon"),
        ((PUSH + "  hooks: [x]\n", SINK), "1.yml:31: hooks is not carried over"),
        ((PUSH + "global: {monitoring: [{type: prometheus, listen: ':9811'}]}\n", SINK), "monitoring"),
    ],
)
def test_what_is_lost_has_its_line(folder: Path, texts: tuple[str, ...], why: str) -> None:
    assert any(why in line for line in run(folder, *texts).lost)


@pytest.mark.parametrize("text", ["jobs: [", "a: &a [*a]", "[" * 400, "jobs: \x00"])
def test_what_is_no_yaml(folder: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"^1\.yml: "):
        run(folder, text)


@pytest.mark.parametrize(
    ("grid", "numbers"),
    [
        ("24x1h", [("hourly", 24)]),
        ("1x1h(keep=all) | 24x1h | 14x1d", [("hourly", 1), ("hourly", 25), ("daily", 16)]),
        ("6x4h | 4x7d", [("hourly", 24), ("weekly", 5)]),
        ("4x15m", [("hourly", 1)]),
        ("2x365d", [("yearly", 2)]),
    ],
)
def test_a_grid_keeps_no_less(grid: str, numbers: list[tuple[str, int]]) -> None:
    assert list(parse_grid(grid)) == numbers


@pytest.mark.parametrize("grid", ["", "0x1h", "x1h", "1x0d", "24"])
def test_what_is_no_grid(grid: str) -> None:
    with pytest.raises(ValueError, match="no interval"):
        list(parse_grid(grid))

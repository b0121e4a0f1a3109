"""The folders of a restore point: found at once, searched, and brought back by the commands that the page shows."""

import os
import random
import re
import subprocess
import sys
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from orchestrator import compose
from orchestrator.app.point_contents import open_points
from orchestrator.app.point_index import PointIndex, PointIndexCache
from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.names import show_name
from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import ManifestHeader, write_manifest
from orchestrator.views import point_page
from tests.ferry import ROOT, Ferry
from tests.web.sites import client, settings_of

ODD_NAMES = (b"-rf\n\xe9 'b\"c$(x)  `y` ", b"\\back %2e%2e <script>alert(1)<script>" + "\u202egnp".encode())
HEADER = ManifestHeader(job="a", source="/a", point="b", digest="xxh128", created=datetime(2026, 1, 1, tzinfo=UTC))


def entry(path: str, kind: str = "f") -> ManifestEntry:
    """An entry of a manifest."""
    digest = f"xxh128:{0:032x}" if kind == "f" else "-"
    return ManifestEntry(path.encode(), kind, 5 if kind == "f" else 0, 10**18, 0o644, 0, 0, 1, 7, b"", digest)


def manifest(tmp_path: Path, entries: list[ManifestEntry]) -> str:
    """A manifest of these entries."""
    path = str(tmp_path / "a.manifest.gz")
    write_manifest(path, HEADER, sorted(entries, key=lambda each: each.path + b"//"))
    return path


def test_each_folder_of_any_tree_holds_its_own_entries(tmp_path: Path) -> None:
    for seed in range(60):
        chance, folders = random.Random(seed), [""]
        entries = {"": entry("", "d")}
        for number in range(chance.randint(0, 60)):
            name = "".join(chance.choice("ab-./0é") for _ in range(3)).strip("./").replace("/", "") + str(number)
            path = "/".join(filter(None, (chance.choice(folders), name)))
            kind = chance.choice("dff")
            entries[path] = entry(path, kind)
            folders += [path] * (kind == "d")
        index = PointIndex(manifest(tmp_path, list(entries.values())))
        assert index.entries == len(entries) - 1
        for folder in folders:
            own = {path for path in entries if path and path.rpartition("/")[0] == folder}
            page = index.folder(folder.encode(), 0, 1000)
            assert page is not None
            assert {each.path.decode() for each in page.entries} == own
            kinds = [each.kind for each in page.entries]
            assert kinds == sorted(kinds, key=lambda kind: kind != "directory"), "folders first"
        assert index.folder(b"nowhere", 0, 10) is None
        found = {each.path.decode() for each in index.find("A", 1000)}
        assert found == {path for path in entries if "a" in path.rpartition("/")[2]}


def test_a_large_folder_comes_in_parts(tmp_path: Path) -> None:
    index = PointIndex(manifest(tmp_path, [entry("", "d"), *(entry(f"f{n:04}") for n in range(1200))]))
    parts = [index.folder(b"", first, 500) for first in (0, 500, 1000, 1500)]
    assert [len(part.entries) for part in parts if part] == [500, 500, 200, 0]
    assert len(index.find("f", 200)) == 200


def test_a_manifest_that_is_cut_or_astray_is_no_point(tmp_path: Path) -> None:
    path = manifest(tmp_path, [entry("", "d"), entry("a", "d"), entry("a/b")])
    Path(path).write_bytes(Path(path).read_bytes()[:-9])
    with pytest.raises(VerificationFailed):
        PointIndex(path)
    with pytest.raises(VerificationFailed, match="and no such folder"):
        PointIndex(manifest(tmp_path, [entry("", "d"), entry("a"), entry("a/b")]))


def test_an_index_is_made_once_and_two_are_kept(tmp_path: Path) -> None:
    path, made = manifest(tmp_path, [entry("", "d")]), list[str]()

    def make(job: str, point: str) -> PointIndex:
        made.append(f"{job} {point}")
        return PointIndex(path)

    cache = PointIndexCache(make)
    for point in "aababcacb":
        cache.get("photos", point)
    assert made == ["photos a", "photos b", "photos c", "photos a", "photos b"]


def test_a_folder_of_a_hundred_thousand_is_found_at_once(tmp_path: Path) -> None:
    """In a tenth of the time that a page may take: with a million it takes 3 ms, and the index 2 s."""
    folders = [entry(f"d{n:03}", "d") for n in range(100)]
    index = PointIndex(
        manifest(tmp_path, [entry("", "d"), *folders, *(entry(f"d{n % 100:03}/f{n}") for n in range(100_000))])
    )
    took = []
    for _ in range(5):
        before = compose.monotonic()
        assert index.folder(b"d050", 0, 500)
        took.append(compose.monotonic() - before)
    assert min(took) < 0.1


@pytest.mark.slow
def test_what_is_ticked_comes_back_by_the_command_that_is_shown(
    ferry: Ferry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = ferry.job()
    for number, name in enumerate(ODD_NAMES):
        Path(os.fsdecode(os.fsencode(source / "deep") + b"/" + name)).write_text(f"odd {number}")
    assert ferry.run("run", "photos").code == 0
    monkeypatch.setattr(point_page, "ASIDE", f"{tmp_path}/it's back")
    settings = settings_of(ferry)
    site = client(settings)
    point = re.findall(r'href="(/points/photos/[^"]+)"', site.get("/jobs/photos").text)[0]
    assert "deep/" in site.get(point).text
    folder = site.get(f"{point}/deep").text
    values = [unescape(each) for each in re.findall(r'name="take" value="([^"]*)"', folder)]
    assert set(values) == {show_name(b"deep/" + name) for name in (*ODD_NAMES, b"a.txt")}
    assert "<script>alert" not in folder
    assert "\u202e" not in folder
    asked = "&".join(f"take={quote(value)}" for value in values)
    page = site.get(f"{point}/deep?{asked}").text
    assert page.count(" checked>") == len(values)
    above = site.get(f"{point}?take=b.bin&take=deep/a.txt").text
    assert re.findall(r'<label><input type="checkbox" name="take" value="([^"]+)" checked>', above) == ["deep/a.txt"]
    assert f'href="{point}/deep?take=b.bin&amp;take=deep%2Fa.txt"' in above, "what is ticked goes along into a folder"
    commands = [unescape(each) for each in re.findall(r"<code>(poolferry restore [^<]*)</code>", page)]
    assert len(commands) == 2 * len(values), "the plan of each, and the restore"
    (ferry.root / "poolferry").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m orchestrator "$@"\n')
    (ferry.root / "poolferry").chmod(0o755)
    for command in commands:
        ended = subprocess.run(
            ["bash", "-c", command],
            env={**ferry.variables(), "PATH": f"{ferry.root}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
            capture_output=True,
        )
        assert ended.returncode == 0, (command, ended.stderr)
    for number, name in enumerate(ODD_NAMES):
        came = Path(os.fsdecode(os.fsencode(f"{tmp_path}/it's back/deep/") + name))
        assert came.read_text() == f"odd {number}"


def test_no_address_of_a_point_leads_out_of_it(ferry: Ferry) -> None:
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    settings = settings_of(ferry)
    with settings.views() as views:
        (point,) = [each.name for each in views.points("photos")]
    site = client(settings)
    base = f"http://localhost:9743/points/photos/{point}"
    assert site.get(base).status_code == 200
    for path in (
        "/..%2f..%2f..%2fetc", "/%2e%2e/%2e%2e/etc/passwd", "/deep%2f..%2f..", "//etc/passwd", "/deep//a.txt", "/deep/a.txt/x", "/%00", "/%ff",
        "/%5cx", "/%5cuffffffff", "/%5cUffffffff", "?take=..%2f..%2fetc%2fpasswd", "?take=%2fetc%2fpasswd", "?take=a%2f.%2fb", "/nothing",
    ):  # fmt: skip
        told = site.get(base + path)
        assert told.status_code == 404, path
        assert "root:" not in told.text
    for path in (
        "/points/photos/2026-01-01T000000Z",
        "/points/photos/..",
        "/points/nobody/x",
        "/points/photos/%3Cscript%3E",
        "/points",
    ):
        assert site.get(path).status_code == 404, path
    assert "No name in this point" in site.get(f"{base}?q=%3Cscript%3E").text
    assert "a.txt" in site.get(f"{base}?q=A.TX").text
    with open_points(settings, "photos", "test") as points:
        os.unlink(points.manifest(point))
    told = client(settings).get(base)
    assert told.status_code == 503
    assert "has no manifest" in told.text


def test_one_file_in_all_points_side_by_side(ferry: Ferry) -> None:
    source = ferry.job()
    for text in (None, "some words, and more\n", "", None):
        if text is not None:
            (source / "deep" / "a.txt").write_text(text)
        if text == "":
            (source / "deep" / "a.txt").unlink()
        (source / "other").write_text(f"{text}")
        assert ferry.run("run", "photos").code == 0
    (source / "deep" / "a.txt").write_text("back\n")
    assert ferry.run("run", "photos").code == 0
    site = client(settings_of(ferry))
    page = site.get("/versions/photos/deep/a.txt").text
    found = re.findall(r'<tr class="version-(\w+)">', page)
    assert found == ["new", "missing", "gone", "different", "new"]
    steady = site.get("/versions/photos/b.bin").text
    assert re.findall(r'<tr class="version-(\w+)">', steady) == ["same", "new"]
    assert "<summary>4 points, unchanged " in steady
    assert len(re.findall(r'href="/points/photos/[^"]+"', steady)) == 5

    assert 'rel="next"' not in page
    points = re.findall(r'href="/points/photos/([^"/]+)/deep"', page)
    older = site.get(f"/versions/photos/deep/a.txt?before={points[1]}").text
    assert re.findall(r'href="/points/photos/([^"/]+)/deep"', older) == points[2:]
    for path in ("../../etc/passwd", "deep/../b.bin", "", "nothing", "deep//a.txt", "%00"):
        assert site.get(f"http://localhost:9743/versions/photos/{quote(path, safe='')}").status_code == 404, path
    assert site.get("/versions/nobody/a").status_code == 404
    assert site.get("/versions/photos/b.bin?before=x").status_code == 404

"""Trees, manifests and whole verifications for the tests of this room."""

import os
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.domain.point import Verdict, VerificationResult
from orchestrator.verify.build import (
    DigestSpool,
    ManifestDraft,
    build_manifest,
    draft_of,
    finish_manifest,
    sorted_records,
)
from orchestrator.verify.compare import find_extras
from orchestrator.verify.entry import EXACT, ManifestEntry, Tolerance, parse_listing, split_records
from orchestrator.verify.manifest import ManifestHeader, read_names, read_rows
from orchestrator.verify.pipelines import listing_command, worker_pipeline
from orchestrator.verify.results import ResultCollector, Taken

CREATED = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
HEADER = ManifestHeader(
    job="photos", source="/srv/pho\ntos\udcff", point="2020-01-02T030405Z", digest="xxh128", created=CREATED
)
HOSTILE = (
    b"new\nline", b"\n", b"carriage\rreturn", b"ends in return\r", b"tab\there", b"\t", b"latin-\xe9", b"\xff\xfe",
    b"c1-\xc2\x9b", b"escape\x1b[31m", b"bell\x07", b"-rf", b"--", b"- ", b" leading", b"trailing ", b"   ", b"'", b'"',
    b"'quo\"te'", b"$(touch PWNED)", b"`id`", b"$HOME", b"*", b"?", b"[1]", b"1", b"a*?[b]", b"a:b", b"back\\slash",
    b"\\", b"\\n", b"ends in \\", b"\\#012", b"#comment", b";semi", b"!bang", b"%s", b"~", b"a//b"[:1] + b"|b",
    b"x" * 255, b"\xcc\x81" * 100, "é".encode(), b"e\xcc\x81", "😀".encode(), "\u2028".encode(), b".~odd~",
    b"...", b"&", b"|",
)  # fmt: skip


def run(command: Command) -> bytes:
    """The output of a command; raises when it fails."""
    environment = {"PATH": os.environ["PATH"], **dict(command.environment)}
    return subprocess.run(command.argv, stdout=subprocess.PIPE, check=True, env=environment).stdout


def records(tree: Path | str, folder: Path) -> Iterable[bytes]:
    """The sorted listing of a tree, raw."""
    listing = run(listing_command(Location(path=os.fspath(tree))))
    return sorted_records(split_records([listing]), folder=str(folder))


def entries(tree: Path | str, folder: Path) -> list[ManifestEntry]:
    """The sorted listing of a tree."""
    return [parse_listing(record) for record in records(tree, folder)]


def start(pipeline: Pipeline, cwd: Path | str = "/") -> subprocess.Popen[bytes]:
    """A worker, running; in the clean environment that the process room gives."""
    (stage,) = pipeline.stages
    return subprocess.Popen(
        stage.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
        env={"PATH": os.environ["PATH"], **dict(stage.environment)},
    )  # fmt: skip


def output_of(pipeline: Pipeline) -> tuple[bytes, bytes, int]:
    """Return what the workers write, what they complain, how they end."""
    process = start(pipeline)
    return (*process.communicate(), process.returncode)


def read_again(
    tree: Path | str,
    manifest: Path | str,
    *,
    workers: int = 2,
    mode: str = "check",
    algorithm: str = "xxh128",
    prefix: bytes = b"",
    tolerance: Tolerance = EXACT,
    taken: Taken | None = None,
    names: bool = False,
) -> VerificationResult:
    """A whole verification by real workers; `names`: look for extra names too."""
    pipeline = worker_pipeline(
        os.fspath(tree), os.fspath(manifest), workers=workers, mode=mode, algorithm=algorithm, prefix=prefix,
        tolerance=tolerance,
    )  # fmt: skip
    collector = ResultCollector(workers, taken=taken)
    collector.feed(output_of(pipeline)[0])
    if names:
        listing = run(listing_command(Location(path=os.fspath(tree)), names=True))
        found = (record.removesuffix(b"//") for record in sorted(split_records([listing])))
        collector.add(find_extras(read_names(os.fspath(manifest), prefix=prefix), found))
    return collector.reading(took_s=1.0)


def make_manifest(
    tree: Path | str, manifest: Path, *, moved: Iterable[tuple[bytes, str]] = (), linked: Path | None = None,
    header: ManifestHeader = HEADER,
) -> ManifestDraft:  # fmt: skip
    """The finished manifest of a tree, as a run makes it."""
    old = read_rows(str(linked)) if linked else ()
    listing = records(tree, manifest.parent)
    built = build_manifest(str(manifest), header, listing=listing, moved=moved, linked=old)
    with DigestSpool(str(manifest.parent)) as spool:
        if built.unknown:
            read_again(tree, draft_of(str(manifest)), mode="fill", algorithm=header.digest, taken=spool.take)
        finish_manifest(str(manifest), built, spool.numbered())
    return built


def make_tree(root: Path, files: dict[str, bytes]) -> Path:
    """A tree with these files."""
    root.mkdir(exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def found(reading: VerificationResult) -> dict[bytes, Verdict]:
    """The verdict on each path."""
    assert len({finding.path for finding in reading.findings}) == len(reading.findings)
    return {finding.path: finding.verdict for finding in reading.findings}


def detail(reading: VerificationResult, path: bytes) -> str:
    """Return what is said of a path."""
    return next(finding.detail for finding in reading.findings if finding.path == path)


def hostile_tree(root: Path) -> Path:
    """A file of every hostile name."""
    root.mkdir()
    for number, name in enumerate(HOSTILE):
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(b"content %d" % number)
    return root

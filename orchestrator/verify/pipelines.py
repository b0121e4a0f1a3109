"""Pipelines of this package as values: list a tree, sync it, read it with several workers."""

import os
import re

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, single_command
from orchestrator.process.own_program import own_environment, own_program, place_of
from orchestrator.verify.entry import EXACT, Tolerance

_FORMAT = r"%P//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%l\0"
_NAMES = r"%P//\0"
_PATTERN = re.compile(r"[\\*?\[\]]")


def listing_command(
    tree: Location,
    *,
    exclude: tuple[bytes, ...] = (),
    apart: tuple[bytes, ...] = (),
    one_filesystem: bool = False,
    names: bool = False,
    root_only: bool = False,
) -> Command:
    """Build the command that lists a directory, itself first.

    `exclude`: names (no patterns) left out with all below, anywhere; `apart`: those left out in the root only.
    `one_filesystem`: leave out other mounted filesystems, as rsync -x does. `names`: only the paths, a quarter of the work, as
    no inode is read. `root_only`: only the directory itself. The command fails when a part cannot be read.
    """
    if not tree.path.startswith("/"):
        raise ValueError(f"not an absolute path: {tree.path}")
    root = tree.path.rstrip("/") + "/."  # "/.": a root that is a symlink is entered, and its own name is never excluded
    alone = (*(("-maxdepth", "0") * root_only), *(("-xdev",) * one_filesystem))
    return Command(
        argv=("find", root, *alone, *find_words(root, exclude=exclude, apart=apart, names=names)),
        effect=Effect.READS,
        host=tree.host,
        environment=(("LC_ALL", "C"),),  # the decimal point of %T@, and patterns byte by byte
    )


def find_words(
    root: str, *, exclude: tuple[bytes, ...], apart: tuple[bytes, ...], names: bool = False
) -> tuple[str, ...]:
    """Return find's words for what a listing leaves out and prints, as `listing_command` has them."""
    skipped: list[str] = []
    for name in exclude:
        pattern = _PATTERN.sub(r"\\\g<0>", name.decode("utf-8", "surrogateescape"))
        skipped += ["-name", pattern, "-prune", "-o"]
    for name in apart:
        path = f"{root}/{name.decode('utf-8', 'surrogateescape')}"
        skipped += ["-path", _PATTERN.sub(r"\\\g<0>", path), "-prune", "-o"]
    return (*skipped, "-printf", _NAMES if names else _FORMAT)


def settle_pipeline(tree: Location) -> Pipeline:
    """Build the pipeline that writes the tree's filesystem out to disk; without it a reading verifies nothing."""
    return single_command("sync", "-f", tree.path, effect=Effect.READS, host=tree.host)


def worker_pipeline(
    root: str,
    manifest: str,
    *,
    workers: int,
    mode: str = "check",
    algorithm: str = "xxh128",
    prefix: bytes = b"",
    tolerance: Tolerance = EXACT,
    keep_cache: bool = False,
) -> Pipeline:
    """Build the pipeline that reads a tree with several workers; its output goes to a `ResultCollector` of as many.

    `mode`: "check" compares; "fill" reads files whose digest a draft lacks, as `algorithm`; "digest" compares, and makes
    digests of `algorithm`. `prefix`: only entries below it; `root` is their copy. `keep_cache`: accept data from the page
    cache.
    """
    options = ["--root", root, "--manifest", manifest, "--mode", mode if mode == "check" else f"{mode}:{algorithm}"]
    if prefix:
        options += ["--prefix", os.fsdecode(prefix)]
    overlook = [name for name in ("owner", "mode", "mtime") if getattr(tolerance, name)]
    if overlook:
        options += ["--overlook", ",".join(overlook)]
    if tolerance.attributes:
        options += ["--attributes", tolerance.attributes]
    if tolerance.grain_ns != 1:
        options += ["--grain", str(tolerance.grain_ns)]
    if keep_cache:
        options += ["--keep-cache", "yes"]
    argv = own_program("orchestrator.verify.worker", "--workers", str(workers), *options)
    places = own_environment(*map(place_of, ("xxhash", "blake3")))
    return Pipeline(stages=(Command(argv=argv, effect=Effect.READS, environment=places),))

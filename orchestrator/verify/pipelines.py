"""Pipelines of this package as values: sync a tree, read it with several workers."""

import os
import sys

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, single_command
from orchestrator.verify.entry import EXACT, Tolerance

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


def settle_pipeline(tree: Location) -> Pipeline:
    """Build the pipeline that writes the tree's filesystem out to disk; without it a reading verifies nothing."""
    return single_command("sync", "-f", tree.path, effect=Effect.READS, host=tree.host)


def worker_pipelines(
    root: str,
    manifest: str,
    *,
    workers: int,
    mode: str = "check",
    algorithm: str = "xxh128",
    prefix: bytes = b"",
    tolerance: Tolerance = EXACT,
    keep_cache: bool = False,
) -> tuple[Pipeline, ...]:
    """Build one pipeline for each worker, to run in parallel; their outputs go to a `ResultCollector`.

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
    # -P: import nothing from the current directory
    front = (sys.executable, "-P", "-m", "orchestrator.verify.worker")
    return tuple(
        Pipeline(stages=(Command(
            argv=(*front, "--share", f"{number}/{workers}", *options), effect=Effect.READS,
            environment=(("PYTHONPATH", _PACKAGES),),
        ),))
        for number in range(1, workers + 1)
    )  # fmt: skip

"""Engines whose copies are trees of files, with manifests beside them."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Literal, Protocol

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline, Step, TreeVerification
from orchestrator.domain.point import RestorePoint


class TreeEngine(Protocol):
    """An engine whose copies are trees of files: points have manifests, and our own small files lie beside them."""

    def moved(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        """Yield (path, digest with its algorithm as prefix, or "" where unknown) of each file that a kept output names."""
        ...

    def digests(
        self, tree: Location, names: str, empty: str, algorithm: str, job: Job, *, whole: bool
    ) -> tuple[Pipeline, Callable[[Iterable[bytes]], Iterator[tuple[bytes, str]]]]:
        """Return the pipeline that reads files of a remote tree there, and the parser of its output lines.

        `names`: a local file with NUL-terminated paths; `empty`: an empty local folder; `whole`: other files of the tree may be
        read, too, if that is quicker. Raises: ValueError for an
        algorithm that is not available there.
        """
        ...

    def plan_sample(self, job: Job, point: RestorePoint, paths: tuple[bytes, ...], to: Location, notes: str) -> Step:
        """Return the step that restores some files of a point, each at its path, to an empty folder. `notes`: local."""
        ...

    def comparison_of(self, job: Job, point: RestorePoint, tree: Location) -> TreeVerification:
        """Return the work that compares a restored tree with its point, in what the job carries."""
        ...

    def damage_note(self, point: RestorePoint) -> Location | None:
        """Return the file that records damaged entries of a point for the next survey; None: it needs no record."""
        ...

    def forget(self, tree: Location, paths: tuple[bytes, ...]) -> Pipeline:
        """Return the pipeline that removes files of an unfinished copy, so that the next one copies them."""
        ...

    def discard(self, file: Location) -> Pipeline:
        """Return the pipeline that removes a small file of ours from the target."""
        ...

    def recovery(self, job: Job, made: datetime) -> str:
        """Return the page that explains how to get files back without this program."""
        ...

    def store(self, local: str, file: Location, *, sized: bool = True) -> Pipeline:
        """Return the pipeline that copies a small local file to the target, completely or not at all.

        `sized`: the other side is told how many bytes come, without which a cut link looks like the file's end; older gates do not know that.
        """
        ...

    def fetch(self, file: Location, local: str) -> Pipeline:
        """Return the pipeline that copies a small file from the target to this machine."""
        ...


MendedPart = Literal["apart", "contents", "names", "top", "times"]
"""What is mended: names of what has become another file, which go; the entries that are named; names of one file that are such in the
sound point; the point's own folder; times."""


class PointMender(Protocol):
    """An engine that can make entries of a damaged point what they are in a sound one."""

    def mend(self, job: Job, *, sound: RestorePoint, damaged: RestorePoint, what: MendedPart) -> Pipeline:
        """Return the pipeline that does so; it reads their paths, and something behind them that is none, NUL-terminated.

        For "apart" it reads the number of the inode and "./PATH" of each, for "times" "@SECONDS" and "./PATH".
        """
        ...

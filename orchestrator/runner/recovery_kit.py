"""Recovery kits, stored beside the copies: what a restore needs when this machine is lost, with our configuration.

A kit of datasets is made once a day after a copy and kept in history too. Beside copies of files lie a recovery page, our
configuration, renewed once a day and when it has changed, and the history, renewed by each run. A failure to store any of this
is a warning: the copy itself is good.
"""

import io
import os
from collections.abc import Iterator
from datetime import timedelta

from orchestrator.domain.age import is_over
from orchestrator.domain.answers import parse_instant
from orchestrator.domain.errors import OrchestratorError, PermissionDenied
from orchestrator.domain.hashes import sha256
from orchestrator.domain.kit import ARCHIVE, DIGESTS, HISTORY, PAGE, KitContents, digest_lines
from orchestrator.engines.contract.engine import implements
from orchestrator.engines.contract.pools import KitMaker
from orchestrator.process.executor import Writer
from orchestrator.runner.kit_digests import OWN_FOLDER, file_digest, note_stored, seal_files
from orchestrator.runner.run_recorder import RunRecorder, run_small, store_file


def refresh_tree_kit(journal: RunRecorder, writer: Writer, *, anew: bool = False) -> bool:
    """Store the page and the configuration beside a copy of files, when the stored ones are old, or are to be written anew.

    Return whether they are there now as they should be.
    """
    if journal.tools.engine.stays:
        return True  # what lies beside these copies is the sender's
    try:
        _refresh(journal, writer, anew=anew)
    except (OrchestratorError, OSError) as error:
        journal.warn(f"the recovery kit could not be renewed: {error}")
        return False
    return True


def _refresh(journal: RunRecorder, writer: Writer, *, anew: bool) -> None:
    tools, job = journal.tools, journal.job
    files = tuple(config_files(tools.config))
    digest = sha256(repr(files).encode("utf-8", "surrogateescape")).hexdigest()
    key = f"configuration at {job.target.name}"
    if not anew and is_fresh(journal) and tools.history.memory(job.name).get(key) == digest:
        return
    folder = f"{tools.state}/notes/kit-{job.name}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{folder}/{PAGE}", "wb") as page:
        page.write(tools.trees.recovery(job, journal.now).encode("utf-8", "surrogateescape"))
    write_archive(f"{folder}/{ARCHIVE}", files)
    seal_files(journal, writer, {name: file_digest(f"{folder}/{name}") for name in (PAGE, ARCHIVE)})
    for name in (PAGE, ARCHIVE):
        store_file(f"{folder}/{name}", job.target.location / f"{OWN_FOLDER}/{name}", journal, writer)
    note_stored(journal, (PAGE, ARCHIVE))
    tools.history.remember(job.name, key, digest)
    record_kit_sent(journal)


# Why not with each copy: of many snapshots the listing alone would take longer than most copies.
OFTEN = timedelta(hours=20)
_CONFIGURATION = (".toml",)


def refresh_kit(journal: RunRecorder, writer: Writer) -> None:
    """Make a new kit when the last one is a day old; a changed pool layout is a warning. Each disk of a set gets it."""
    tools, job = journal.tools, journal.job
    engine, known = tools.engine, tools.history.kits.of(job.name)
    if not implements(engine, KitMaker) or tools.engine.stays:
        return
    fresh = known is not None and not is_over(known.made_at, OFTEN, journal.now)
    if fresh and is_fresh(journal):  # made today, but this disk has no copy of it yet
        return
    try:
        kit = engine.kit_for_place(job, known.kit) if known and fresh else engine.survey_kit(job, journal.now, writer)
        if known and known.kit.layout != kit.layout:
            journal.warn(f"the pool of {job.source} is made otherwise than on {known.made_at:%Y-%m-%d}: {kit.layout}")
        if not fresh:
            tools.history.kits.keep(job.name, kit, journal.now)
        _carry(journal, writer, engine, kit)
        record_kit_sent(journal)
    except PermissionDenied as error:
        journal.say(f"the recovery kit stays in history alone: {error.why}")
        record_kit_sent(journal)  # tried again with the next one: a gate refuses it each time
    except (OrchestratorError, OSError) as error:
        journal.warn(f"the recovery kit could not be renewed: {error}")


def is_fresh(journal: RunRecorder) -> bool:
    """Return True when the job's place (in a rotation set: this disk) got or refused a kit within a day."""
    sent = journal.tools.history.fact(journal.job.name, _key(journal), parse_instant)
    return not is_over(sent, OFTEN, journal.now)


def record_kit_sent(journal: RunRecorder) -> None:
    """Record that the place has a kit of this moment, or would not take it."""
    journal.tools.history.remember(journal.job.name, _key(journal), journal.now.isoformat())


def _key(journal: RunRecorder) -> str:
    return f"kit at {journal.job.target.name}"


def _carry(journal: RunRecorder, writer: Writer, engine: KitMaker, kit: KitContents) -> None:
    folder = f"{journal.tools.state}/notes/kit-{journal.job.name}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    archive = f"{folder}/kit.tar"
    journal.tools.history.backup_to(f"{folder}/{HISTORY}")
    write_archive(
        archive,
        (*kit_files(kit), *config_files(journal.tools.config), (HISTORY, _read(f"{folder}/{HISTORY}"))),
    )
    run_small(engine.store_kit(journal.job, archive), journal, writer)


def kit_files(kit: KitContents) -> Iterator[tuple[str, bytes]]:
    """Yield the kit's own files."""
    for name, text in (("RECOVERY.md", kit.recovery), ("kit.json", kit.content), ("guids.tsv", kit.guids)):
        yield name, text.encode("utf-8", "surrogateescape")


def config_files(config: str) -> Iterator[tuple[str, bytes]]:
    """Yield our configuration files, unchanged."""
    for folder, _, names in os.walk(config):
        for name in sorted(names):
            if name.endswith(_CONFIGURATION):
                path = os.path.join(folder, name)
                yield os.path.join("configuration", os.path.relpath(path, config)), _read(path)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write_archive(path: str, files: tuple[tuple[str, bytes], ...]) -> None:
    """Write an archive that any tar reads, for its owner alone; in it a file of digests, as `sha256sum -c` reads it."""
    import tarfile  # most runs write no archive

    files = (*files, (DIGESTS, digest_lines(dict(files))))
    with open(path, "wb") as file, tarfile.open(fileobj=file, mode="w") as archive:
        os.chmod(path, 0o600)
        for name, content in files:
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(content), 0o600
            archive.addfile(about, io.BytesIO(content))

"""What lies beside copies of files, so that they, and we, come back without this machine: a page, and our configuration.

The history lies there too, renewed by each run. The rest is renewed once a day, and when a file of the configuration has
changed. Failing to is a warning: the copy itself is good.

Changes things.
"""

import os
from hashlib import sha256

from orchestrator.domain.errors import OrchestratorError
from orchestrator.process.executor import Writer
from orchestrator.runner.calling import run
from orchestrator.runner.journal import Journal
from orchestrator.runner.kits import carried, configuration, is_fresh, write_archive

OURS = ".poolferry"
PAGE, ARCHIVE = "RECOVERY.md", "configuration.tar"


def refresh_tree_kit(journal: Journal, writer: Writer) -> None:
    """The page and the configuration beside a copy of files, where those that lie there are old."""
    try:
        _refresh(journal, writer)
    except (OrchestratorError, OSError) as error:
        journal.warn(f"the recovery kit could not be renewed: {error}")


def _refresh(journal: Journal, writer: Writer) -> None:
    tools, job = journal.tools, journal.job
    files = tuple(configuration(tools.config))
    digest = sha256(repr(files).encode("utf-8", "surrogateescape")).hexdigest()
    key = f"configuration at {job.target.name}"
    if is_fresh(journal) and tools.history.memory(job.name).get(key) == digest:
        return
    folder = f"{tools.state}/notes/kit-{job.name}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{folder}/{PAGE}", "wb") as page:
        page.write(tools.trees.recovery(job, journal.now).encode("utf-8", "surrogateescape"))
    write_archive(f"{folder}/{ARCHIVE}", files)
    for name in (PAGE, ARCHIVE):
        run(tools.trees.store(f"{folder}/{name}", job.target.location / f"{OURS}/{name}"), journal, writer)
    tools.history.remember(job.name, key, digest)
    carried(journal)

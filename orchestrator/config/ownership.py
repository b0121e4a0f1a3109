"""The files that decide which commands run here: hooks, check-commands and keys. Nobody else may write them."""

import os
from collections.abc import Iterator

from orchestrator.domain.job import Job

_KEY_OPTION = "identityfile="


def called_files(job: Job, directory: str) -> Iterator[str]:
    """Yield the files that a job runs or trusts: hooks, the drill's check-command, ssh keys, sanoid's configuration."""
    for _, commands in job.hooks.calls:
        yield from (found for argv in commands for found in hook_files(argv[0], directory))
    if job.drill.check_command and job.drill.check_command[0].startswith("/"):
        yield job.drill.check_command[0]
    yield from _keys(job.pipe.ssh_options)
    if job.snapshots and job.snapshots.use:
        yield job.snapshots.use


def hook_files(program: str, directory: str) -> tuple[str, ...]:
    """Return the file of a hook that is named by a path or lies in the configuration's hooks/; others belong to the system."""
    if "/" in program:
        return (program,)
    own = os.path.join(directory, "hooks", program)
    return (own,) if os.path.lexists(own) else ()


def _keys(options: tuple[str, ...]) -> Iterator[str]:
    """Yield the private keys that ssh options name: -i FILE, -iFILE, -o IdentityFile=FILE."""
    words = list(options)
    for word, after in zip(words, [*words[1:], ""], strict=False):
        found = after if word == "-i" else word[2:] if word.startswith("-i") else ""
        plain = (after if word == "-o" else word.removeprefix("-o")).strip()
        if plain.lower().startswith(_KEY_OPTION):
            found = plain[len(_KEY_OPTION) :]
        if found.startswith("/"):
            yield found

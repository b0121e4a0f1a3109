"""The gates of this machine: gates/NAME.toml, one file for each key that another machine holds."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from orchestrator.config.decode import TomlFile, decode_section, parse_toml_file
from orchestrator.domain.errors import ConfigMistake, DeclarationError
from orchestrator.domain.gate import Gate
from orchestrator.domain.names import JOB_NAME, show_name
from orchestrator.trees.beneath import writable_by_others

if TYPE_CHECKING:  # a gate's request needs nothing of jobs
    from orchestrator.config.parse_job import JobDraft

FOLDER = "gates"


def gate_file(directory: str, name: str) -> str:
    """Return the path of a gate's file."""
    return os.path.join(directory, FOLDER, f"{name}.toml")


def load_gate(directory: str, name: str) -> Gate:
    """Load a gate. Raises: DeclarationError with all its mistakes."""
    mistakes: list[ConfigMistake] = []
    gate = None
    if JOB_NAME.fullmatch(name) is None:
        mistakes.append(_mistake(show_name(name), "is no name of a gate", "letters, digits, '.', '_' and '-'"))
    else:
        gate = _read(gate_file(directory, name), mistakes)
    if gate is None or mistakes:
        raise DeclarationError(tuple(mistakes))
    return gate


def gate_mistakes(directory: str) -> Iterator[ConfigMistake]:
    """Yield the mistakes of all gates."""
    for name in _names(directory):
        try:
            load_gate(directory, name)
        except DeclarationError as error:
            yield from error.mistakes


def judge_arrivals(drafts: "Iterable[JobDraft]", directory: str) -> None:
    """Record each job that would prune what came through no gate: the owner's own snapshots have other rules."""
    gates = [gate for name in _names(directory) if (gate := _sound(directory, name))]
    roots, folders = [each.receives for each in gates if each.receives], [each.adds for each in gates if each.adds]
    for draft in drafts:
        source = draft.keys.get("source")
        if source is None:
            continue
        if source.path.startswith("/"):
            if source.path not in folders:
                there = f"a folder to which a gate adds: {', '.join(folders)}" if folders else _wanted("adds")
                draft.toml_file.say(("source",), f"no gate adds to {show_name(source.path)}", there)
        elif not any(f"{source.path}/".startswith(f"{root}/") for root in roots):
            there = f"a dataset into which a gate receives: {', '.join(roots)}" if roots else _wanted("receives")
            draft.toml_file.say(("source",), f"no gate receives into {show_name(source.path)}", there)


def _wanted(key: str) -> str:
    return f'{FOLDER}/NAME.toml with {key} = "…"'


def _names(directory: str) -> list[str]:
    try:
        return sorted(
            name.removesuffix(".toml") for name in os.listdir(os.path.join(directory, FOLDER)) if name.endswith(".toml")
        )
    except (FileNotFoundError, NotADirectoryError):  # the configuration itself may be no folder: others say so
        return []


def _sound(directory: str, name: str) -> Gate | None:
    """Return a gate; None for one with mistakes, which `gate_mistakes` names."""
    try:
        return load_gate(directory, name)
    except DeclarationError:
        return None


_parsed: dict[tuple[str, bytes], Gate] = {}
"""The gates without mistakes that this process has parsed, by path and content: the forks that answer requests read, but parse no more."""


def _read(path: str, mistakes: list[ConfigMistake]) -> Gate | None:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        what = "there is no such gate" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        mistakes.append(_mistake(path, what, 'a file that "poolferry setup gate" wrote'))
        return None
    if gate := _parsed.get((path, content)):
        mistakes += writable_by_others((path,))
        return gate
    held = parse_toml_file(path, content, least="what the key may do")
    if isinstance(held, ConfigMistake):
        mistakes.append(held)
        return None
    one = held.table.get("reads")
    table = {**held.table, "reads": [one]} if isinstance(one, str) else held.table
    gate = decode_section(held, Gate, table, (), lambda _: "")
    _judge(held, gate)
    if gate is not None and not held.mistakes:
        _parsed[path, content] = gate
    mistakes += [*held.mistakes, *writable_by_others((path,))]
    return gate


def _judge(held: TomlFile, gate: Gate | None) -> None:
    """Record a gate that lets nothing through, and a limit of what it does not let in."""
    if gate is None or held.mistakes:
        return
    if not gate.rights:
        held.say((), "says not what the key may do", 'one of reads = "…", sends = "…", receives = "…" and adds = "…"')
    elif gate.pools and not gate.sends:
        held.say(("pools",), "names pools to which nothing is copied", 'sends = "…", or no pools')
    elif gate.at_most is not None and not gate.receives:
        held.say(("at-most",), "limits nothing", 'receives = "…", or no at-most (keep-free is for adds)')
    elif gate.keep_free is not None and not gate.adds:
        held.say(("keep-free",), "limits nothing", 'adds = "…", or no keep-free (at-most is for receives)')


def _mistake(file: str, what: str, expected: str) -> ConfigMistake:
    return ConfigMistake(file=show_name(file), line=None, key="", what=what, expected=expected)

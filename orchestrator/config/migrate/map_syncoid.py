"""Conversion of a syncoid call to job keys, with the reason for each option that is not converted."""

import re
from collections.abc import Iterator

from orchestrator.config.migrate.job_text import Value
from orchestrator.config.migrate.result import Lost
from orchestrator.config.migrate.syncoid import SyncoidCall, parse_pattern, parse_special
from orchestrator.domain.command_line import quoted
from orchestrator.domain.units import parse_size

Keys = dict[str, dict[str, Value]]
Notes = list[str]

# Options without a counterpart, and why; those to whose place another way of poolferry comes; and those that change only what
# syncoid prints or asks first.
_LOST = {
    "force-delete": "poolferry never destroys a copy that does not fit: `poolferry run JOB --aside` renames it away",
    "delete-target-snapshots": "what goes on the target is for [keep] there; snapshots that only the copy has stay until then",
    "insecure-direct-connection": 'poolferry goes through ssh; [pipe] transport = "mbuffer" is its own open connection',
    "no-clone-handling": "poolferry sends clones as clones wherever their origin is copied too",
}
_OTHERWISE = {
    "no-resume": "poolferry always continues where a cut transfer stopped",
    "create-bookmark": "poolferry makes its own bookmark for each target before each send",
    "keep-sync-snap": "poolferry takes no snapshot of its own, so there is none to keep",
    "preserve-recordsize": "all properties are sent; [zfs] protect names those that must not change the copy",
    "preserve-properties": "all properties are sent; [zfs] protect names those that must not change the copy",
    "use-hold": "poolferry holds only what a cut transfer needs; let go of syncoid's own, on each side: `zfs list -Ho name -t snapshot "
    r"-r SOURCE | xargs -r -d '\n' zfs holds -H | awk -F '\t' '$2 ~ /^syncoid_/ { print $2; print $1 }' | xargs -r -d '\n' -n 2 zfs release`",
    "identifier": "poolferry keeps a bookmark for each target by itself",
    "compress": "blocks are sent as they lie compressed in the pool, and not compressed again",
    "pv-options": "poolferry shows its own progress",
}
MAY_DESTROY = "# may-destroy"
"""The consent to roll back, as a comment. Why it may be needed: syncoid leaves copies mounted, and the mountpoint of a child alone
changes its parent. Why only as a comment: syncoid destroys by default, but here the owner must consent explicitly."""
_SEND_DEFAULTS = set("Lcep")


def map_options(told: SyncoidCall) -> tuple[Keys, Notes]:
    """Return the keys by section, and a note for each option that is converted differently or not at all."""
    keys: Keys = {"zfs": {"recursive": told.has("recursive")}, "pipe": {}}
    notes: Notes = [Lost(f"--{name} is not carried over: {why}") for name, why in _LOST.items() if told.has(name)]
    where = quoted(told.source.path)
    notes += [
        f"--{name} is not needed: {why.replace('SOURCE', where)}" for name, why in _OTHERWISE.items() if told.has(name)
    ]
    if told.has("no-stream"):
        keys["zfs"]["catch-up"] = "newest"
    if not told.has("no-rollback"):
        keys["zfs"][MAY_DESTROY] = ("rollback",)
    for carry in (_excludes, _snapshot_names, _special, _rate, _ssh, _sudo):
        notes += carry(told, keys)
    return keys, notes


def _excludes(told: SyncoidCall, keys: Keys) -> Iterator[str]:
    if not told.has("recursive"):
        return
    found: list[str] = []
    for option in ("exclude", "exclude-datasets"):
        for regex in told.of(option):
            patterns = _below(told.source.path, regex)
            found += patterns
            if not patterns:
                yield Lost(f"--{option}={regex} is not carried over: write [zfs] exclude with * for any part of a name")
            elif regex.endswith("$"):
                yield f"--{option}={regex}: [zfs] exclude leaves out what lies below it too"
    if found:
        keys["zfs"]["exclude"] = tuple(dict.fromkeys(found))


def _below(source: str, regex: str) -> list[str]:
    """Return patterns for names below the source, equal to the expression for whole names; empty when none exist."""
    pattern = parse_pattern(regex)
    if pattern is None:
        return []
    bare = pattern.removeprefix("*")
    if bare.startswith(f"{source}/"):
        return [bare.removeprefix(f"{source}/")]
    if pattern.startswith("*/"):
        return [bare.removeprefix("/"), pattern]
    return [pattern] if pattern.startswith("*") else []


def _snapshot_names(told: SyncoidCall, keys: Keys) -> Iterator[str]:
    for option, key in (("include-snaps", "snapshots"), ("exclude-snaps", "skip-snapshots")):
        patterns = [(regex, parse_pattern(regex)) for regex in told.of(option)]
        found = tuple(pattern for _, pattern in patterns if pattern)
        if found:
            keys["zfs"][key] = found
        for regex, pattern in patterns:
            if pattern is None:
                yield Lost(f"--{option}={regex} is not carried over: write [zfs] {key} with * for any part of a name")


def _special(told: SyncoidCall, keys: Keys) -> Iterator[str]:
    for text in told.of("sendoptions"):
        letters = [letter for letter, _ in parse_special(text)]
        if "w" in letters:
            keys["zfs"]["raw"] = "yes"
        for letter in letters:
            if letter not in _SEND_DEFAULTS | {"w"}:
                yield Lost(f"zfs send -{letter} is not carried over: poolferry chooses how to send, dataset by dataset")
    protected: list[str] = []
    for text in told.of("recvoptions"):
        for letter, value in parse_special(text):
            if letter == "x" and value:
                protected.append(value)
            elif letter == "o" and value:
                copy = f"`zfs set {quoted(value)} {quoted(told.target.path)}`"
                yield Lost(f"zfs receive -o {value} is not carried over: {copy}, and [zfs] protect keeps it so")
            elif letter not in "us":
                yield Lost(f"zfs receive -{letter} is not carried over: poolferry never forces a copy")
    if protected:
        keys["zfs"]["protect"] = tuple(dict.fromkeys(protected))


def _rate(told: SyncoidCall, keys: Keys) -> Iterator[str]:
    limits = (*told.of("source-bwlimit"), *told.of("target-bwlimit"), *told.of("bwlimit"))
    yield from _size(limits, "rate-limit", keys, "bwlimit")
    yield from _size(told.of("mbuffer-size"), "buffer", keys, "mbuffer-size")


def _size(texts: tuple[str, ...], key: str, keys: Keys, option: str) -> Iterator[str]:
    sizes = []
    for text in texts:
        try:
            sizes.append((parse_size(text.upper()), text.upper()))
        except ValueError:
            yield Lost(f"{option} {text} is not carried over: [pipe] {key} takes a size such as 20M")
    if sizes:
        keys["pipe"][key] = min(sizes)[1]


def _ssh(told: SyncoidCall, keys: Keys) -> Iterator[str]:
    flags = (("sshconfig", "-F"), ("sshkey", "-i"), ("sshcipher", "-c"), ("sshoption", "-o"))
    words = [word for option, flag in flags for value in told.of(option) for word in (flag, value)]
    if words:
        keys["pipe"]["ssh-options"] = tuple(words)
    port = next(iter(told.of("sshport")), "")
    if port and not re.fullmatch(r"[0-9]{1,5}", port):
        yield Lost(f"--sshport {port} is not carried over: it is no number")


def _sudo(told: SyncoidCall, keys: Keys) -> Iterator[str]:
    """Set `sudo` as syncoid uses it: `sudo zfs` wherever it is not root; a host without a user may be either."""
    hosts = [place.host for place in (told.source, told.target) if place.host]
    if any(host.user not in (None, "root") for host in hosts) and not told.has("no-privilege-elevation"):
        keys["zfs"]["sudo"] = True
    if any(host.user is None for host in hosts) and not told.has("no-privilege-elevation"):
        yield "the host's user is not given: where ssh logs in as another than root, write [zfs] sudo = true"

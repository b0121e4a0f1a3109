"""RECOVERY.md: steps to take after the loss of a pool, with zfs alone. Its blocks are for `sh`, in this order; each stops at its
first error.

The page is made from a kit for the very place that it lies at: of a rotation set each disk has a page of its own.
"""

import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from orchestrator.domain.job import Job
from orchestrator.domain.names import make_printable, printable_word

# A name in zfs holds no quote, so one within quotes survives a login.
_THERE = """\
copy={copy}
to={to}
far={far}
tab=$(printf '\\t')
there() {{
  [ -n "$far" ] || {{ "$@"; return; }}
  line=
  for word do line="$line '$word'"; done
  $far "$line" </dev/null
}}
"""
# Lists lie in /root: in /tmp anybody may lay something under a name before root writes it.
# Datasets by the age of the copies: parents and origins of clones are older than the datasets that need them.
_CARRY = """\
there zfs list -H -r -s createtxg -o name,type,origin,encryption,encryptionroot -t filesystem,volume "$copy" >/root/poolferry-copies
while IFS=$tab read -r dataset type origin encryption root; do
  there zfs list -H -d 1 -t snapshot -s createtxg -o name "$dataset" >/root/poolferry-snapshots
  first=$(head -n 1 /root/poolferry-snapshots)
  last=$(tail -n 1 /root/poolferry-snapshots)
  name=$to${{dataset#"$copy"}}
  [ -n "$first" ] || {{ zfs list "$name" >/dev/null 2>&1 || zfs create -u "$name"; continue; }}
  # b: with the values that the source had. w: what is encrypted by itself comes as it lies, with its own key.
  how=-Lceb
  case "$encryption $root/" in
    off*) ;;
    *" $copy/"*) how=-Lcew ;;
    *) how=-Lc ;;
  esac
  # A pool's own dataset is there already, new and empty; what is encrypted cannot come into it.
  over=
  case $name in
    */*) ;;
    *) over=-F; [ "$how" != -Lcew ] || {{ over=; name=$name/own-files; }} ;;
  esac
  # Room is none for now; what the source had stays beneath, and returns in part 4.
  keep="-o reservation=none -o refreservation=none"
  [ "$type" = volume ] || keep="$keep -o quota=none -o refquota=none"
  if [ "$origin" = - ]; then there zfs send $how "$first" | zfs receive -u $over $keep "$name"
  else there zfs send $how -i "$origin" "$first" | zfs receive -u $keep "$name"; fi
  [ "$first" = "$last" ] || there zfs send $how -I "$first" "$last" | zfs receive -u $keep "$name"
  # Whole or not at all: a send that failed shows only in what did not arrive.
  [ "$(zfs list -H -d 1 -t snapshot -s createtxg -o name "$name" | tail -n 1)" = "$name@${{last#*@}}" ]
done </root/poolferry-copies
"""
_SETTLE = """\
zfs list -H -r -o name -t filesystem "$to" >/root/poolferry-names
while IFS= read -r name; do
  zfs inherit -S quota "$name"; zfs inherit -S refquota "$name"
done </root/poolferry-names
zfs list -H -r -o name -t filesystem,volume "$to" >/root/poolferry-names
while IFS= read -r name; do
  zfs inherit -S reservation "$name"; zfs inherit -S refreservation "$name"
done </root/poolferry-names
# What no stream brings of encrypted copies, after what it brings of the others.
while IFS=$tab read -r dataset type origin encryption root; do
  [ "$encryption" != off ] || continue
  name=$to${{dataset#"$copy"}}
  case $name in */*) ;; *) name=$name/own-files ;; esac
  there zfs get -Hp -o property,received all "$dataset" >/root/poolferry-values
  while IFS=$tab read -r property value; do
    case "$value $property" in
      "- "*|*" casesensitivity"|*" normalization"|*" utf8only"|*" volblocksize"|*" volsize"|*" version"|*" key"*) ;;
      *) zfs set "$property=$value" "$name" ;;
    esac
  done </root/poolferry-values
done </root/poolferry-copies
"""
_PAGE = """\
# How to bring {source} back

Made by poolferry for the job `{job}`, {made}. All that follows needs only OpenZFS, and `ssh` where the copy is on a host;
`poolferry restore run {job} --to {source}` does the same and verifies it. Beside this page: `kit.json` (properties,
snapshots, owners) and `guids.tsv`.

The copy is `{copy}`, on {copy_host}. Nothing below changes it. Run the blocks as root, one after the other, on the machine
that shall have the data; each stops at its first error: look at that before you go on.

```sh
{reach}
```

## 1. The pool

Destroy nothing before you know that all on it is elsewhere. This is how the pool was made; put in other disks where these
are gone (`ls -l /dev/disk/by-id`).

```sh
{create}
```

## 2. What lies above

```sh
{above}
```

## 3. The data

All snapshots of all datasets; nothing is mounted.

```sh
(set -e
{there}{carry})
```

## 4. What could have kept the data from coming

```sh
(set -e
{there}{settle})
```

## 5. Keys

{keys}

## 6. Look, then use it

No line of difference: every snapshot is there, by its guid.

```sh
zfs list -Hp -r -t snapshot -o name,guid {to} | sort >/root/poolferry-guids
zfs mount -a
```

`diff /root/poolferry-guids guids.tsv` shows what the copy lacked. Backups go on incrementally from what both sides hold.
"""


def recovery_page(job: Job, made: datetime, content: Mapping[str, Any]) -> str:
    """Render the page for the place of a job's copy. `content`: of the kit."""
    source, copy = job.source, job.target.location
    to, pool = shlex.quote(source.path), copy.path.partition("/")[0]
    names = {"copy": shlex.quote(copy.path), "to": to, "far": shlex.quote(_far(job))}
    there = _THERE.format(**names)
    reach = (
        f"{_far(job)} zfs list -o name {names['copy']}" if copy.host else
        "\n".join(job.target.reach) if job.target.reach else
        f"zpool list {shlex.quote(pool)} >/dev/null 2>&1 || zpool import -N {shlex.quote(pool)}"
    )  # fmt: skip
    return make_printable(_PAGE.format(
        source=source.path, job=job.name, made=f"{made:%Y-%m-%d %H:%M} UTC", copy=copy.path, reach=reach,
        copy_host=copy.host or "this machine's disk or pool", create=content["create"],
        above="\n".join(content.get("above", ())) or ": # nothing but the pool itself",
        there=there, carry=_CARRY.format(**names), settle=_SETTLE.format(**names), to=to,
        keys=_keys(content["datasets"], source.path),
    ))  # fmt: skip


def _far(job: Job) -> str:
    """Return the words that run a command where the copy is; empty: here."""
    host = job.target.location.host
    return host.ssh if host else ""


def create_dataset_line(name: str, options: Mapping[str, str]) -> str:
    """Build the command that creates a dataset again."""
    words = (word for each in options.items() for word in ("-o", f"{each[0]}={each[1]}"))
    return shlex.join(("zfs", "create", *words, name))


def _keys(datasets: Mapping[str, Mapping[str, Mapping[str, str]]], source: str) -> str:
    """Render the keys, never a key itself: where each lies, and the commands that load it wherever a raw stream needs it."""
    roots = {
        name: (told["keyformat"]["value"], told.get("keylocation", {}).get("value", "prompt"))
        for name, told in sorted(datasets.items())
        if told.get("encryptionroot", {}).get("value") == name and "keyformat" in told
    }
    if not roots:
        return "Nothing was encrypted."
    lines = [printable_word(f"* `{root}`: a {kind} key, from {place}") for root, (kind, place) in roots.items()]
    why = (
        "A key in a file has to be there again; another place is given with `zfs load-key -L`. What comes back raw has a key of\n"
        "its own each, at first; with `change-key -i` it shares its parent's again."
    )
    return "\n".join((*lines, "", why, "", "```sh", "(set -e", *_load_lines(datasets, roots, source), ")", "```"))


def _load_lines(
    datasets: Mapping[str, Mapping[str, Mapping[str, str]]], roots: Mapping[str, tuple[str, str]], source: str
) -> Iterator[str]:
    for name, told in sorted(datasets.items()):
        root = told.get("encryptionroot", {}).get("value", "-")
        if root not in roots or not f"{name}/".startswith(f"{source}/"):
            continue
        at = shlex.quote(name if "/" in name else f"{name}/own-files")
        place = roots[root][1]
        where = f"-L {shlex.quote(place)} " if place != "prompt" else ""
        yield f'[ "$(zfs get -Ho value keystatus {at})" != unavailable ] || zfs load-key {where}{at}'
        if name == root and place != "prompt":
            yield f'[ "$(zfs get -Ho value encryptionroot {at})" != {at} ] || zfs set keylocation={shlex.quote(place)} {at}'
        if name != root and "/" in name and name.rpartition("/")[0] != source.partition("/")[0]:
            yield f'[ "$(zfs get -Ho value encryptionroot {at})" != {at} ] || zfs change-key -i {at}'

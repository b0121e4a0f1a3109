"""RECOVERY.md: steps to take after the loss of a pool, with zfs alone. Its blocks are for `sh`, in this order."""

import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime

from orchestrator.domain.job import Job

# Datasets by the age of the copies: parents and origins of clones are older than the datasets that need them.
_CARRY = """\
copy={copy}
to={to}
tab=$(printf '\\t')
zfs list -H -r -s createtxg -o name,type,origin,encryption,encryptionroot -t filesystem,volume "$copy" >/tmp/copies
while IFS=$tab read -r dataset type origin encryption root; do
  first=$(zfs list -H -d 1 -t snapshot -s createtxg -o name "$dataset" | head -n 1)
  last=$(zfs list -H -d 1 -t snapshot -s createtxg -o name "$dataset" | tail -n 1)
  name=$to${{dataset#"$copy"}}
  [ -n "$first" ] || {{ zfs create -u "$name"; continue; }}
  # b: with the values that the source had. w: what is encrypted by itself comes as it lies, with its own key.
  how=-Lceb
  case "$encryption $root/" in
    off*) ;;
    *" $copy/"*) how=-Lcew ;;
    *) how=-Lc ;;
  esac
  # Room is none for now; what the source had stays beneath, and returns in part 4.
  keep="-o reservation=none -o refreservation=none"
  [ "$type" = volume ] || keep="$keep -o quota=none -o refquota=none"
  if [ "$origin" = - ]; then zfs send $how "$first" | zfs receive -u $keep "$name"
  else zfs send $how -i "$origin" "$first" | zfs receive -u $keep "$name"; fi
  [ "$first" = "$last" ] || zfs send $how -I "$first" "$last" | zfs receive -u $keep "$name"
done </tmp/copies
"""
_SETTLE = """\
copy={copy}
to={to}
tab=$(printf '\\t')
# What no stream brings of encrypted copies.
while IFS=$tab read -r dataset type origin encryption root; do
  [ "$encryption" != off ] || continue
  zfs get -Hp -o property,received all "$dataset" | while IFS=$tab read -r property value; do
    case "$value $property" in
      "- "*|*" casesensitivity"|*" normalization"|*" utf8only"|*" volblocksize"|*" volsize"|*" version"|*" key"*) ;;
      *) zfs set "$property=$value" "$to${{dataset#"$copy"}}" ;;
    esac
  done
done </tmp/copies
zfs list -H -r -o name -t filesystem {to} | while IFS= read -r name; do
  zfs inherit -S quota "$name"; zfs inherit -S refquota "$name"
done
zfs list -H -r -o name -t filesystem,volume {to} | while IFS= read -r name; do
  zfs inherit -S reservation "$name"; zfs inherit -S refreservation "$name"
done
"""
_PAGE = """\
# How to bring {source} back

Made by poolferry for the job `{job}`, {made}. All that follows needs only OpenZFS; `poolferry restore run {job} --to
{source}` does the same and verifies it. Beside this page: `kit.json` (properties, snapshots, owners) and `guids.tsv`.

The copy is `{copy}`. Import its pool first: `zpool import -N {copy_pool}`, on {copy_host}. Nothing below changes the copy.

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
{carry}```

## 4. What could have kept the data from coming

```sh
{settle}```

## 5. Keys

{keys}

## 6. Look, then use it

No line of difference: every snapshot is there, by its guid.

```sh
zfs list -Hp -r -t snapshot -o name,guid {to} | sort >/tmp/guids
zfs mount -a
```

`diff /tmp/guids guids.tsv` shows what the copy lacked. Backups go on incrementally from what both sides hold.
"""


def recovery_page(
    job: Job, made: datetime, create: str, above: Iterable[tuple[str, Mapping[str, str]]],
    secrets: Iterable[tuple[str, str, str]],
) -> str:  # fmt: skip
    """Render the page. `above`: datasets above the source, with properties; `secrets`: key roots, kinds and places."""
    source, copy = job.source, job.target.location
    to = shlex.quote(source.path)
    return _PAGE.format(
        source=source.path, job=job.name, made=f"{made:%Y-%m-%d %H:%M} UTC", copy=copy.path,
        copy_pool=copy.path.partition("/")[0], copy_host=copy.host or "this machine", create=create,
        above="\n".join(create_dataset_line(name, told) for name, told in above) or ": # nothing but the pool itself",
        carry=_CARRY.format(copy=shlex.quote(copy.path), to=to), settle=_SETTLE.format(copy=shlex.quote(copy.path), to=to), to=to, keys=_keys(secrets),
    )  # fmt: skip


def create_dataset_line(name: str, options: Mapping[str, str]) -> str:
    """Build the command that creates a dataset again."""
    words = (word for each in options.items() for word in ("-o", f"{each[0]}={each[1]}"))
    return shlex.join(("zfs", "create", *words, name))


def _keys(secrets: Iterable[tuple[str, str, str]]) -> str:
    lines = [f"* `{root}`: a {kind} key, from {place}: `zfs load-key -r {root}`" for root, kind, place in secrets]
    if not lines:
        return "Nothing was encrypted."
    why = "What comes back raw has a key of its own each; `zfs change-key -i NAME` lets it share its parent's again, once both\nare loaded."
    return "\n".join((*lines, "", why))

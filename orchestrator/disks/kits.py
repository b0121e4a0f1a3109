"""Commands that read recovery kits in a folder, in a dataset, or on a device that is not mounted yet.

They change nothing there: mounts are read-only and visible to this process alone, a pool is imported read-only and exported
again. Their output is an archive of all files that may belong to a kit.
"""

from orchestrator.disks.commands import untouched_options
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect, Pipeline

DATASET = "poolferry-kit"
_PACK = (
    r"find . -xdev -maxdepth 7 \( -name points -o -name latest -o -name lost+found \) -prune -o -type f \( "
    r"-name history.sqlite -o -name configuration.tar -o -name RECOVERY.md -o -name target.json -o -name kit.json "
    r"-o -path '*/configuration/*.toml' \) -print0 | tar -c --null -T - -f -"
)
# Argument: the folder.
_FOLDER = f'cd -- "$1" && {_PACK}'
# What both ways into a pool share. Argument: the dataset below which kits lie.
_KITS = r"""n=0; kits() { zfs list -H -o name "$1" >/dev/null || exit; IFS='
'; for k in $(zfs list -H -o name -t filesystem -r "$1" | grep -E '(^|/)poolferry-kit$'); do
n=$((n+1)); mkdir "/mnt/$n" && mount -t zfs -o ro "$k" "/mnt/$n" || exit; done; }
pack() { cd /mnt && find $(ls /mnt) -xdev -maxdepth 7 FIND; cd /; }
mount -t tmpfs none /mnt || exit
""".replace("FIND", _PACK.partition("-maxdepth 7 ")[2])
_DATASET = _KITS + 'kits "$1" && pack'
# Argument: the device. A pool of a machine that is lost was not exported there: hence -f, which is safe where nothing is written.
_DEVICE = (
    _KITS
    + r"""t=; trap '[ -z "$t" ] || { cd /; umount /mnt/*; zpool export "$t"; }' EXIT
pool() { g=$(blkid -p -o value -s UUID "$1"); p=$(zpool list -H -o guid,name | sed -n "s/^$g	//p")
[ -n "$p" ] || { zpool import -f -N -o readonly=on -o cachefile=none -d "$1" -t "$g" poolferry-look ||
zpool import -f -N -o readonly=on -o cachefile=none -t "$g" poolferry-look || exit; t=poolferry-look; p=$t; }
kits "$p"; }
show() { n=$((n+1)); mkdir "/mnt/$n" && mount -t "$2" -o "$3,nosuid,nodev,noexec" "$1" "/mnt/$n" || exit; }
look() { case $(blkid -p -o value -s TYPE "$1") in
zfs_member) pool "$1";; CASES
crypto_LUKS) printf "%s is locked\n" "$1" >&2; exit 1;;
esac; }
[ -b "$1" ] || { printf "%s is no device that is here\n" "$1" >&2; exit 1; }
for d in $(lsblk -nrpo PATH "$1"); do look "$d"; done; [ "$n" = 0 ] || pack
""".replace("CASES", " ".join(f'{kind}) show "$1" {kind} {options};;' for kind, options in untouched_options().items()))
)


# What a path on a host may mean. Arguments: the path, how a dataset is read.
_EITHER = f"""d=${{1#/}}; some() {{ cd -- "$1" && {_PACK.partition(" -print0")[0]} -print -quit; }}
if [ -d "$1" ] && [ -n "$(some "$1")" ]; then cd -- "$1" && {_PACK}; exit; fi
if command -v zfs >/dev/null && zfs list -H -o name "$d" >/dev/null 2>&1; then
[ "$(id -u)" = 0 ] || {{ printf "kits in a dataset are read by root alone: ssh://root@…\n" >&2; exit 1; }}
exec unshare --mount --propagation slave sh -c "$2" sh "$d"
fi
[ -d "$1" ] || {{ printf "%s is no folder there, and %s no dataset\n" "$1" "$d" >&2; exit 1; }}
"""


def host_pipeline(path: str, host: Host, keeps: str) -> Pipeline:
    """Return the pipeline that packs a folder on a host, or a dataset there with kits below it."""
    return _one(_EITHER, path, _DATASET, host=host, keeps=keeps)


def folder_pipeline(path: str, keeps: str) -> Pipeline:
    """Return the pipeline that packs a folder."""
    return _one(_FOLDER, path, host=None, keeps=keeps)


def dataset_pipeline(dataset: str, keeps: str) -> Pipeline:
    """Return the pipeline that packs a dataset of kits, or those below a dataset. Its pool is already imported."""
    return _alone(_DATASET, dataset, keeps=keeps)


def device_pipeline(device: str, keeps: str) -> Pipeline:
    """Return the pipeline that packs the kits on a device of this machine, or on a part of it."""
    return _alone(_DEVICE, device, keeps=keeps)


def _alone(text: str, value: str, *, keeps: str) -> Pipeline:
    """Return a pipeline in a mount namespace of its own, with which its mounts end."""
    return _one(text, value, host=None, keeps=keeps, before=("unshare", "--mount", "--propagation", "slave"))


def _one(text: str, *values: str, host: Host | None, keeps: str, before: tuple[str, ...] = ()) -> Pipeline:
    line = f"PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; {text}"
    command = Command(argv=(*before, "sh", "-c", line, "sh", *values), effect=Effect.READS, host=host)
    return Pipeline(stages=(command,), keeps=keeps)

"""Every command line of the pool engine, each with its reason."""

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect

# A login without a terminal, and an ordinary user, often have no sbin in their PATH.
_PATH = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
# $1 pool. Its state comes first: a pool that waits for its disks answers zpool, but lets zfs wait too.
_LOOK = """
export LC_ALL=C TZ=UTC
date +%s
command -v zpool >/dev/null || { echo "zpool: not found" >&2; exit 127; }
v=; [ ! -r /sys/module/zfs/version ] || read -r v </sys/module/zfs/version
[ -n "$v" ] || v=$(zpool version) || exit
printf "%s\\n" "$v" | head -n 1
printf "=list\\n"; zpool list -Hp -o name,guid,size,allocated,free,health "$1" || exit
printf "=vdevs\\n"; zpool list -HpPv "$1" || exit
printf "=status\\n"
case $v in 0.*|2.[012].*) zpool status -DPpsv "$1" || exit;; *) zpool status -DPpsvj --json-int "$1" || exit;; esac
printf "=memory\\n"; grep "^MemTotal:" /proc/meminfo; grep "^c_max " /proc/spl/kstat/zfs/arcstats
[ "$(zpool list -H -o health "$1")" = SUSPENDED ] && { printf "=end\\n"; exit 0; }
printf "=settings\\n"
zfs get -Hp -r -t filesystem,volume -s local,received -o name,property,value sync,checksum,dedup "$1" || exit
printf "=mounts\\n"
while read -r what at kind rest; do
[ "$kind" = zfs ] && case $what in "$1"|"$1"/*) printf "%s\\t%s\\n" "$what" "$at";; esac
done </proc/mounts
printf "=work\\n"
for f in $(grep -lszxE "send|receive|recv|([^ ]*/)?rsync" /proc/[0-9]*/cmdline); do
f=${f%/cmdline}; printf "%s\\t%s\\n" "$(readlink "$f/cwd")" "$(tr "\\t\\n\\0" "   " <"$f/cmdline" | cut -c 1-2000)" 2>/dev/null
done
printf "=end\\n"
"""


def survey_command(root: Location) -> Command:
    """Build the command that prints all data that a health check needs: one call, so one login.

    `zpool status`: -D shows dedup tables, -P full names of devices, -p exact numbers, -s slow answers, -v files that lost data.
    Never -x: it calls a pool healthy that has lost a device. As JSON from OpenZFS 2.3 on. `zpool list -Hp` and `zfs get -Hp`
    are made for programs in every version. Running sends, receives and copies are found by their arguments and directory,
    started by anyone.
    """
    return _script(_LOOK, root.path, effect=Effect.READS, host=root.host)


def scrub_command(root: Location, *, pause: bool) -> Command:
    """Build the command that starts or resumes a scrub, or pauses it: a paused scrub keeps its progress."""
    words = ("scrub", *(("-p",) if pause else ()), root.path)
    if root.host is None:
        return Command(argv=("zpool", *words), effect=Effect.WRITES)
    return _script('exec zpool "$@"', *words, effect=Effect.WRITES, host=root.host)


def _script(text: str, *values: str, effect: Effect, host: Host | None) -> Command:
    return Command(argv=("sh", "-c", f"{_PATH}; {_one_line(text)}", "sh", *values), effect=effect, host=host)


def _one_line(text: str) -> str:
    """Return the script as one line, so that a plan and a log can show it and a person can paste it."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return "".join(line + (" " if line.endswith(("then", "do")) else "; ") for line in lines).removesuffix("; ")

"""Every command line of the sanoid engine, and the configuration for sanoid, each line with its reason."""

from collections.abc import Iterable
from datetime import datetime

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.sanoid.model import ALL, INTERVALS, QUARTER, SanoidRules

_LOOK = """
command -v sanoid >/dev/null || { echo "sanoid: not found" >&2; exit 127; }
date +%s
zfs list -Hp -o name -t filesystem,volume "$2" "$1" || exit
echo
zfs list -Hp -o creation,name -t snapshot -d 1 -s creation "$1"
"""
# $1 folder, "" for a temporary one; $2 sanoid.conf; $3 another folder that holds one
_BEGIN = """
folder=$1; text=$2; use=$3; shift 3
if [ -z "$folder" ]; then
folder=$(mktemp -d) || exit
trap 'rm -rf -- "$folder"' EXIT; trap 'trap "" HUP INT TERM; exit 143' HUP INT TERM
printf "%s" "$text" > "$folder/sanoid.conf"
fi
mkdir -p -- "$folder" || exit
rm -f -- "$folder/snapshots.txt"
sanoid() { TZ=UTC command sanoid --configdir="${use:-$folder}" --cache-dir="$folder" --run-dir="$folder" --verbose "$@"; }
"""
_TAKE = """
root=$1; shift
sanoid --take-snapshots 2> "$folder/errors"; code=$?; cat -- "$folder/errors" >&2; [ "$code" = 0 ] || exit "$code"
! grep -q "CRITICAL ERROR" "$folder/errors" || exit 70
[ "$#" -gt 0 ] || exit 0
zfs list -Hp -o creation,name -t snapshot -d 1 -s creation "$root" > "$folder/there" || exit
for due; do
kind=${due%=*}; newest=$(grep "@autosnap_[^@]*_$kind\\$" "$folder/there" | tail -n 1 | cut -f 1)
[ "${newest:-0}" -ge "${due#*=}" ] || { echo "no $kind snapshot of $root was taken" >&2; exit 71; }
done
"""
_PRUNE = """
sanoid --prune-snapshots 2> "$folder/errors"; code=$?; cat -- "$folder/errors" >&2; [ "$code" = 0 ] || exit "$code"
stays="dataset is busy|being held|has dependent clones|dataset does not exist|could not find any snapshots to destroy"
! grep -E "^(cannot|internal error|FATAL|ERROR)" "$folder/errors" | grep -qvE "$stays" || exit 70
"""
_BOUNDARIES = """\
frequent_period = {quarter}
hourly_min = 0
daily_hour = 0
daily_min = 0
weekly_wday = 1
weekly_hour = 0
weekly_min = 0
monthly_mday = 1
monthly_hour = 0
monthly_min = 0
yearly_mon = 1
yearly_mday = 1
yearly_hour = 0
yearly_min = 0
prune_defer = 0
"""


def survey_command(root: Location, *, downward: bool) -> Command:
    """Build the command that prints the machine's time, the datasets, an empty line, the root's dated snapshots.

    Why only the root's: ZFS must read each snapshot for its time, and sanoid decides for the other datasets by itself.
    """
    return _script(_LOOK, root.path, "-r" if downward else "-d0", effect=Effect.READS, host=root.host)


def version_command(host: Host | None) -> Command:
    """Build the command that prints sanoid's version."""
    return Command(argv=("sanoid", "--version"), effect=Effect.READS, host=host)


def take_command(
    root: Location, text: str, folder: str, *, due: Iterable[tuple[str, datetime]], use: str | None
) -> Command:
    """Build the command by which sanoid takes due snapshots; it checks for one of each `due` kind afterwards.

    Why the script around it: sanoid ends with 0 when `zfs snapshot` fails; it uses its own list of snapshots for 15 minutes
    (--force-update renews it too late for the same run), so that list is removed first; and it names snapshots by local time,
    which has one hour twice in autumn.
    Source: sanoid 2.1.0 and 2.2.0.
    """
    promised = (f"{kind}={int(since.timestamp())}" for kind, since in due)
    values = (*_values(root, text, folder, use), root.path, *promised)
    return _script(_BEGIN + _TAKE, *values, effect=Effect.WRITES, host=root.host)


def prune_command(root: Location, text: str, folder: str, *, use: str | None) -> Command:
    """Build the command by which sanoid removes snapshots that no rule keeps; the numbers in the job file are the consent. A
    snapshot that a hold keeps, or a clone needs, stays and is reported; any other that could not be removed is a failure.
    """
    return _script(_BEGIN + _PRUNE, *_values(root, text, folder, use), effect=Effect.DESTROYS, host=root.host)


def sanoid_conf(
    root: str, rules: SanoidRules, *, take: bool, downward: bool, spare: bool = True, left_out: Iterable[str] = ()
) -> str:
    """Render the sanoid.conf of one dataset, either for taking or for pruning.

    Why one for each: for sanoid 0 means both to take none and to keep none. `spare`: pruning does not touch a kind of 0. Why
    every boundary is set: sanoid's own defaults come from another file, its days end at 23:59, and its years are wrong with any
    boundary but the first of January. `left_out`: full names; with any, each dataset gets its own snapshot instead of all at
    one instant (zfs snapshot -r).
    """
    left = tuple(left_out)
    recursive = "no" if not downward or " " in root else "zfs" if take and not left else "yes"
    numbers = "".join(f"{kind} = {rules.of(kind) or (ALL if spare and not take else 0)}\n" for kind in INTERVALS)
    head = f"[{root}]\nrecursive = {recursive}\nautosnap = {_word(take)}\nautoprune = {_word(not take)}\n"
    others = "".join(f"\n[{name}]\nrecursive = yes\nautosnap = no\nautoprune = no\n" for name in left)
    return "# Written by poolferry for each run.\n" + head + numbers + _BOUNDARIES.format(quarter=QUARTER) + others


def _word(yes: bool) -> str:
    return "yes" if yes else "no"


def _values(root: Location, text: str, folder: str, use: str | None) -> tuple[str, str, str]:
    """Return the script's first arguments: a local folder that holds the text, or for a host the text itself."""
    return ("", text, use or "") if root.host else (folder, "", use or "")


def _script(text: str, *values: str, effect: Effect, host: Host | None) -> Command:
    return Command(argv=("sh", "-c", _one_line(text), "sh", *values), effect=effect, host=host)


def _one_line(text: str) -> str:
    """Return the script as one line, so that a plan and a log can show it and a person can paste it."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return "".join(line + (" " if line.endswith(("then", "do")) else "; ") for line in lines).removesuffix("; ")

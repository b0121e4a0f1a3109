"""The small constant scripts of the zfs engine, for `sh` and for channel programs; names are passed as arguments.

One call is one login over ssh. Nothing is ever spliced into a text.
"""

# A login without a terminal, and an ordinary user, often have no sbin in their PATH.
PATH = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
SUDO = 'zfs() { sudo -n zfs "$@"; }'

# Arguments: how, the pool, the root, depth of the snapshots, depth of the datasets, properties, columns, kinds, what is above.
# Kinds "newest": of each dataset its newest snapshot alone, which `prevsnap` names; a clone's may be another dataset's.
SURVEY = """
u=$(id -u); s=no; m=no; v=; g=; h=
[ "$1" = plain ] || [ "$u" = 0 ] || s=sudo
command -v mbuffer >/dev/null && m=mbuffer
[ ! -r /sys/module/zfs/version ] || read -r v </sys/module/zfs/version
[ -n "$v" ] || { v=$(zfs version) || exit; v=$(printf "%s\\n" "$v" | head -n 1); }
printf "=here %s %s %s %s\\n" "$u" "$s" "$m" "$v"
[ -z "$SSH_CONNECTION" ] || printf "=wire %s\\n" "$SSH_CONNECTION"
k=/proc/spl/kstat/zfs/$2
if [ -r "$k/guid" ] && [ -r "$k/state" ]; then read -r g <"$k/guid"; read -r h <"$k/state"
else
h=$(zpool list -Hp -o guid,health "$2" 2>&1) || case $h in
*"no such pool"*) h=ABSENT;; *) printf "%s\\n" "$h" >&2; exit 1;;
esac
g=${h%%[!0-9]*}; h=${h##*[!A-Z]}
fi
printf "=pool %s %s\\n" "${g:-0}" "$h"
case $h in ABSENT|SUSPENDED|FAULTED|UNAVAIL) exit 0;; esac
r=$3; d=$4; e=$5; p=$6; c=$7; t=$8; w=$9; shift 9
above() { printf "=above\\n"; zfs list -Hp -o name,available,encryption -t filesystem,volume "$@" 2>/dev/null; }
[ "$w" = no ] || [ $# = 0 ] || above "$@"
printf "=datasets\\n"
x=$({ x=$(zfs get -Hp "$e" -t filesystem,volume -o name,property,value,source "$p" "$r" 2>&1 >&3) || printf "=failed %s\\n" "$x"; } 3>&1)
case $x in
*"=failed "*"does not exist"*) printf "=absent\\n"; above "$@" "$r"; printf "=end\\n"; exit 0;;
*"=failed "*) printf "%s\\n" "${x#*=failed }" >&2; exit 1;;
esac
printf "%s\\n=snapshots\\n" "$x"
if [ "$t" = newest ]; then
b=$(printf "\\t")
x=$(printf "%s\\n" "$x" | sed -n "s/^\\(.*\\)${b}prevsnap${b}\\(\\1@[^${b}]*\\).*/\\2/p")
[ -z "$x" ] || printf "%s\\n" "$x" | tr "\\n" "\\0" | xargs -0 zfs list -Hp -t snapshot -o "$c" || exit
else
zfs list -Hp "$d" -t "$t" -o "$c" "$r" || exit
fi
printf "=end\\n"
"""

# Prints for each process that receives: a line "=process PID", then its arguments, one a line.
RECEIVING = """
for f in $(grep -lszxE "receive|recv" /proc/[0-9]*/cmdline); do
f=${f%/cmdline}; printf "=process %s\\n" "${f##*/}"; tr "\\0" "\\n" <"$f/cmdline" 2>/dev/null;
done; :
"""

# Arguments: pid, dataset. Ends that very process, and no other that has got its number since.
END_RECEIVE = """
p=$1; d=$2; n=0
ours() {
tr "\\0" "\\n" 2>/dev/null <"/proc/$p/cmdline" | {
IFS= read -r a; IFS= read -r b; l=; while IFS= read -r c; do l=$c; done
[ "${a##*/}" = zfs ] && { [ "$b" = receive ] || [ "$b" = recv ]; } && [ "$l" = "$d" ]; };
}
[ -r "/proc/$p/cmdline" ] && ours || exit 0
end TERM "$p"
while ours; do
n=$((n+1))
[ "$n" -ne 50 ] || end KILL "$p"
[ "$n" -lt 100 ] || { printf "the receiving process %s does not end\\n" "$p" >&2; exit 1; }
sleep 0.2;
done 2>/dev/null; :
"""
END_PLAIN = 'end() { kill -"$1" "$2"; }'
END_SUDO = 'end() { sudo -n kill -"$1" "$2"; }'

# Arguments: dataset. What has nothing to throw away is fine.
ABORT = """
e=$(zfs receive -A "$1" 2>&1) || case $e in
*"does not have any resumable"*|*"dataset does not exist"*) ;;
*) printf "%s\\n" "$e" >&2; exit 1;;
esac
"""

# Arguments: the program, the pool, then (dataset, snapshot, bookmark) again and again.
KEEP_BY_PROGRAM = """
l=$1; p=$2; shift 2; printf "%s" "$l" | zfs program -m 67108864 -t 50000000 "$p" - "$@" >/dev/null
"""
# 17: it is there already. 2: the snapshot is gone.
BOOKMARKS = """
local names = (...)["argv"]
local failed = nil
for i = 1, #names, 3 do
  local at = names[i] .. "@" .. names[i + 1]
  local code = zfs.sync.bookmark(at, names[i] .. "#" .. names[i + 2])
  if code ~= 0 and code ~= 17 and failed == nil then
    failed = "cannot create bookmark of '" .. at .. "': " .. (code == 2 and "dataset does not exist" or "error " .. code)
  end
end
if failed ~= nil then error(failed) end
"""
# Eight at once: each waits for the pool's next transaction, which they then share.
KEEP_ONE_BY_ONE = """
one() { e=$(zfs bookmark "$1@$2" "$1#$3" 2>&1) || case $e in
*"bookmark exists"*) ;; *) printf "%s\\n" "$e" | head -n 1 >&2; echo x;;
esac; }
bad=$(n=0; while [ $# -ge 3 ]; do
one "$1" "$2" "$3" & shift 3; n=$((n+1)); [ $((n % 8)) -ne 0 ] || wait;
done; wait); [ -z "$bad" ]
"""
# Arguments: bookmarks, whole names; nothing without a # is touched.
DROP_BOOKMARKS = """
one() { case $1 in *"#"*) ;; *) echo x; return;; esac
e=$(zfs destroy "$1" 2>&1) || case $e in
*"does not exist"*) ;; *) printf "%s\\n" "$e" | head -n 1 >&2; echo x;;
esac; }
bad=$(n=0; for b do one "$b" & n=$((n+1)); [ $((n % 8)) -ne 0 ] || wait; done; wait); [ -z "$bad" ]
"""
# Arguments: tag, snapshots. zfs waits for the pool's next transaction once for each; eight programs side by side share it.
_IN_EIGHT = """
t=$1; shift
part() { i=0; for s do shift; [ $((i % 8)) -ne "$k" ] || set -- "$@" "$s"; i=$((i+1)); done
[ $# -gt 0 ] || return 0
zfs WORD "$t" "$@" 2>&1; s=$?; [ "$s" -le 1 ] || printf "zfs WORD ended with %s\\n" "$s"; }
e=$(for k in 0 1 2 3 4 5 6 7; do [ $k -lt $# ] || break; part "$@" & done; wait)
e=$(printf "%s\\n" "$e" | grep -v FINE); [ -z "$e" ] || { printf "%s\\n" "$e" >&2; exit 1; }
"""
HOLD = _IN_EIGHT.replace("WORD", "hold").replace("FINE", '-e "^$" -e "tag already exists"')
RELEASE = _IN_EIGHT.replace("WORD", "release").replace("FINE", '-e "^$" -e "no such tag" -e "does not exist"')

# Arguments: mbuffer's memory, seconds of patience, the words of zfs. The sender's own status comes out, unless its reader is
# to blame. Why patience: a machine that lost its power tells nobody, and sshd would wait for two hours for it.
SEND = """
n=$1; w=$2; shift 2; exec 3>&1
s=$({ { zfs "$@" 3>&- 4>&-; echo $? >&4; } | mbuffer -q -s 128k -m "$n" -W "$w" >&3 3>&- 4>&-; } 4>&1); m=$?
case $s in 0|141) exit "$m";; *) exit "$s";; esac
"""
RECEIVE = """
n=$1; w=$2; shift 2; mbuffer -q -s 128k -m "$n" -W "$w" | zfs "$@"
"""
ZFS = """
zfs "$@"
"""

# Arguments: (flags, mode, base, what) again and again. Prints "size N" for each, "size -" where it cannot be told.
WEIGH = """
while [ $# -ge 4 ]; do
o=$(case $2 in "") zfs send "$1n" "$4";; -t) zfs send "$1n" -t "$3";; *) zfs send "$1n" "$2" "$3" "$4";; esac 2>/dev/null)
printf "%s\\nsize\\t-\\n" "$o" | grep -m 1 "^size"; shift 4;
done; :
"""
# Arguments: the pool, the nearest dataset, the root. Prints properties, then name, createtxg and creation of the root's snapshots.
SPACE = """
zpool get -Hp -o property,value freeing "$1" || exit
zfs get -Hp -o property,value available,compression,dedup "$2" || exit
[ "$2" != "$3" ] || zfs list -Hp -r -t snapshot -o name,createtxg,creation "$3"
"""
# Arguments: datasets and snapshots. Prints name, property and value: of snapshots the guid, of datasets their newest snapshot.
# What is not there is not printed.
CONFIRM = """
exec 3>&1
e=$(zfs get -Hp -o name,property,value guid,prevsnap "$@" 2>&1 >&3) || e=$(printf "%s\\n" "$e" | grep -v "does not exist")
[ -z "$e" ] || { printf "%s\\n" "$e" >&2; exit 1; }
"""
# Prints name, guid and createtxg of all snapshots of the datasets.
NEWEST = """
zfs list -Hp -d 1 -t snapshot -o name,guid,createtxg "$@"
"""
# Arguments: dataset. Prints nothing for one that is not there.
POINTS = """
exec 3>&1
e=$(zfs list -Hp -d 1 -t snapshot -s createtxg -o name,creation "$1" 2>&1 >&3) || case $e in
*"does not exist"*) ;; *) printf "%s\\n" "$e" >&2; exit 1;;
esac
"""

# Arguments: pool, dataset. Prints who we are, whether receives can be resumed, and what is delegated at the nearest dataset.
RIGHTS = """
printf "=user %s\\n" "$(id -un)"; printf "=groups %s\\n" "$(id -Gn)"
printf "=resumable %s\\n" "$(zpool get -Hp -o value feature@extensible_dataset "$1")"
d=$2; while :; do a=$(zfs allow "$d" 2>/dev/null) && break; case $d in */*) d=${d%/*};; *) break;; esac; done
printf "=at %s\\n%s\\n" "$d" "$a"
"""


def one_line(text: str) -> str:
    """Return the script as one line, so that a plan and a log can show it and a person can paste it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(line + (" " if _goes_on(line) else "; ") for line in lines).removesuffix("; ")


def _goes_on(line: str) -> bool:
    """Return whether the text after a line belongs to the same command."""
    return line.endswith(("{", "|", ";")) or line.rsplit(maxsplit=1)[-1] in ("then", "do", "else", "in")

#!/bin/sh
# shellcheck shell=dash
# Prints all that a plan needs to know of one side, in parts that begin with a line "=name". Without "=end" it is cut short.
# Arguments: "sudo" where changes need it, else "plain"; the pool; the root; how deep snapshots are listed (-d1 or -r), how
# deep datasets are (-d0 or -r); the datasets' properties; the snapshots' columns; the kinds of snapshots; "yes" to print the
# datasets above though the root is there, else "no"; then the datasets above the root.
# Kinds "newest": of each dataset its newest snapshot alone, which `prevsnap` names; a clone's may be another dataset's.
# Where none of our own properties is among those asked for, they come in a part of their own, each value on one line.
how=$1 pool=$2 root=$3 snapshot_depth=$4 dataset_depth=$5 properties=$6 columns=$7 kinds=$8 print_above=$9
shift 9

user=$(id -u)
sudo=no
[ "$how" = plain ] || [ "$user" = 0 ] || sudo=sudo
mbuffer=no
command -v mbuffer > /dev/null && mbuffer=mbuffer
# Files are read where they are there: each program that a look starts costs a millisecond or two.
version=
[ ! -r /sys/module/zfs/version ] || read -r version < /sys/module/zfs/version
if [ -z "$version" ]; then
  version=$(zfs version) || exit
  version=$(printf "%s\n" "$version" | head -n 1)
fi
printf "=here %s %s %s %s\n" "$user" "$sudo" "$mbuffer" "$version"
[ -z "$SSH_CONNECTION" ] || printf "=wire %s\n" "$SSH_CONNECTION"

guid=
health=
kernel=/proc/spl/kstat/zfs/$pool
if [ -r "$kernel/guid" ] && [ -r "$kernel/state" ]; then
  read -r guid < "$kernel/guid"
  read -r health < "$kernel/state"
else
  listed=$(zpool list -Hp -o guid,health "$pool" 2>&1) || case $listed in
    *"no such pool"*) listed=ABSENT ;;
    *)
      printf "%s\n" "$listed" >&2
      exit 1 ;;
  esac
  guid=${listed%%[!0-9]*}
  health=${listed##*[!A-Z]}
fi
printf "=pool %s %s\n" "${guid:-0}" "$health"
# zfs would wait for such a pool, perhaps for ever.
case $health in ABSENT | SUSPENDED | FAULTED | UNAVAIL) exit 0 ;; esac

# What is not there, or may not be seen, is left out.
list_above() {
  printf "=above\n"
  zfs list -Hp -o name,available,encryption -t filesystem,volume "$@" 2>/dev/null
}
[ "$print_above" = no ] || [ $# = 0 ] || list_above "$@"

# An owner may give a property of ours a value of several lines, which then look like properties of other datasets.
list_marks() {
  printf "=marks\n"
  zfs get -H "$dataset_depth" -t filesystem,volume -s local -o name,property \
    poolferry:flags,poolferry:placeholder,poolferry:waits "$root" |
    while IFS="$tab" read -r name property; do
      value=$(zfs get -H -o value "$property" "$name" | tr "\n" " ")
      printf "%s\t%s\t%s\tlocal\n" "$name" "$property" "$value"
    done
}

tab=$(printf "\t")
printf "=datasets\n"
get_datasets() {
  zfs get -Hp "$dataset_depth" -t filesystem,volume -o name,property,value,source "$properties" "$root"
}
# The root is absent only where zfs says so of the root itself; where one below it went meanwhile, another look is as good.
if ! datasets=$(get_datasets 2>/dev/null); then
  case $(zfs list -H -o name "$root" 2>&1) in
    *"'$root': dataset does not exist"*)
      printf "=absent\n"
      list_above "$@" "$root"
      printf "=end\n"
      exit 0 ;;
  esac
  datasets=$(get_datasets) || exit 1
fi

printf "%s\n" "$datasets"
case $properties in *poolferry:*) ;; *) list_marks ;; esac
printf "=snapshots\n"
if [ "$kinds" = newest ]; then
  newest=$(
    printf "%s\n" "$datasets" | sed -n "s/^\(.*\)${tab}prevsnap${tab}\(\1@[^${tab}]*\).*/\2/p"
  )
  if [ -n "$newest" ]; then
    # One of them may be gone meanwhile, or be no name at all.
    newest=$(printf "%s\n" "$newest" | tr "\n" "\0" | xargs -0 zfs list -Hp -t snapshot -o "$columns" 2>/dev/null) ||
      newest=$(zfs list -Hp "$snapshot_depth" -t snapshot -o "$columns" "$root") || exit
    printf "%s\n" "$newest"
  fi
else
  zfs list -Hp "$snapshot_depth" -t "$kinds" -o "$columns" "$root" || exit
fi
printf "=end\n"

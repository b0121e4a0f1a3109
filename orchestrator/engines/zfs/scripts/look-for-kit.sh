#!/bin/sh
# shellcheck shell=dash
# Prints all that a recovery kit holds. Keys are never asked for; what only root may see is left out for others.
# Arguments: the pool, the root, what lies above it.
# Where a function `ask_library` stands before this script, it answers some questions for all names at once, or fails.
pool=$1 root=$2
shift 2
printf "=status\n"
zpool status -P "$pool" || exit
printf "=pool\n"
zpool get -Hp -o property,value,source all "$pool" || exit
printf "=ashift\n"
# Before OpenZFS 2.2 devices have no properties, and only zdb shows it: it asks root, and a cache file that has the pool.
if shifts=$(zpool get -Hp -o value ashift "$pool" all-vdevs 2>/dev/null); then
  printf "%s\n" "$shifts"
else
  zdb -C "$pool" 2>/dev/null | grep ashift
fi
printf "=links\n"
[ ! -d /dev/disk/by-id ] || find /dev/disk/by-id -type l -printf "%p\t%l\n"
# One list for all that follows. How many holds a snapshot has is among what zfs opens each for: the library tells the holds sooner.
list_all() { zfs list -Hp -r -t all -o "name,guid,createtxg$1" "$root"; }
answer() { printf "%s\n" "$answers" | sed -n "s/^$1	//p"; }
answered=no
if command -v ask_library > /dev/null && all=$(list_all ""); then
  answers=$({ printf "%s\n" "$@"; printf "%s\n" "$all" | grep -v "#" | cut -f 1; } | ask_library) && answered=yes
fi
[ "$answered" = no ] || known_received() { answer received; }
printf "=datasets\n"
properties_by_line "$@" || exit
properties_by_line -r "$root" || exit
printf "=marks\n"
[ "$answered" = yes ] || all=$(list_all ,userrefs) || exit
printf "%s\n" "$all" | grep "[@#]" | cut -f 1-3
printf "=holds\n"
# Holds are asked of snapshots that have any, rights of datasets. No stream brings either.
if [ "$answered" = yes ]; then
  answer held
  datasets=$(answer granted)
else
  printf "%s\n" "$all" | sed -n "s/	[1-9][0-9]*\$//p" | cut -f 1 | holds_by_dataset || exit
  datasets=$(printf "%s\n" "$all" | grep -v "[@#]" | cut -f 1)
fi
printf "=allowed\n"
# What is said of a dataset holds what is said of all above it, so those at the ends of the tree are enough.
rights_at() { [ -z "$1" ] || zfs allow "$1" 2>/dev/null; }
printf "%s\n" "$datasets" | {
  last=
  while IFS= read -r dataset; do
    case $dataset in
      "$last"/*) ;;
      *) rights_at "$last" ;;
    esac
    last=$dataset
  done
  rights_at "$last"
}
printf "=users\n"
getent passwd
printf "=groups\n"
getent group
printf "=end\n"

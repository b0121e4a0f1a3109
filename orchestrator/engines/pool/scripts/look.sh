#!/bin/sh
# shellcheck shell=dash
# Prints all data that a health check needs, in parts that begin with a line "=name". Without "=end" it is cut short.
# Arguments: the pool; "scan" for its status alone.
pool=$1 only=${2-}
export LC_ALL=C TZ=UTC
# A login without a terminal, and an ordinary user, often have no sbin in their PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
date +%s
if ! command -v zpool > /dev/null; then
  echo "zpool: not found" >&2
  exit 127
fi
version=
[ ! -r /sys/module/zfs/version ] || read -r version < /sys/module/zfs/version
if [ -z "$version" ]; then version=$(zpool version) || exit; fi
printf "%s\n" "$version" | head -n 1
if [ "$only" != scan ]; then
  # -H and -p are made for programs, in every version.
  printf "=list\n"
  zpool list -Hp -o name,guid,size,allocated,free,health "$pool" || exit
  printf "=vdevs\n"
  zpool list -HpPv "$pool" || exit
fi
# -D tells of dedup tables, -P whole names of devices, -p whole numbers, -s answers that came late, -v which files lost
# data. Never -x: it calls a pool healthy that has lost a device. As JSON from OpenZFS 2.3 on.
printf "=status\n"
case $version in
  0.* | 2.[012].*) zpool status -DPpsv "$pool" || exit ;;
  *) zpool status -DPpsvj --json-int "$pool" || exit ;;
esac
if [ "$only" = scan ]; then
  printf "=end\n"
  exit 0
fi
printf "=memory\n"
grep "^MemTotal:" /proc/meminfo
grep "^c_max " /proc/spl/kstat/zfs/arcstats
# A pool that waits for its disks answers zpool, but lets zfs wait too.
if [ "$(zpool list -H -o health "$pool")" = SUSPENDED ]; then
  printf "=end\n"
  exit 0
fi
printf "=settings\n"
zfs get -Hp -r -t filesystem,volume -s local,received -o name,property,value sync,checksum,dedup "$pool" || exit
printf "=mounts\n"
while read -r what at kind _; do
  if [ "$kind" = zfs ]; then
    case $what in
      "$pool" | "$pool"/*) printf "%s\t%s\n" "$what" "$at" ;;
    esac
  fi
done < /proc/mounts
# What root or our user sends, receives or copies is found by its arguments and its directory. Newlines and tabs in either are
# printed as blanks: a folder's owner may have named it after parts of this answer.
printf "=work\n"
# No name below /proc has a blank.
# shellcheck disable=SC2013
for file in $(grep -lszxE "send|receive|recv|([^ ]*/)?rsync" /proc/[0-9]*/cmdline); do
  process=${file%/cmdline}
  is_own_process "$process" || continue
  words=$(tr "\t\n\0" "   " < "$file" | cut -c 1-2000)
  printf "%s\t%s\n" "$(readlink "$process/cwd" | tr "\t\n" "  ")" "$words"
done
printf "=end\n"

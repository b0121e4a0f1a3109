#!/bin/sh
# shellcheck shell=dash
# Prints all that a recovery kit holds. Keys are never asked for; what only root may see is left out for others.
# Arguments: the pool, the root, what lies above it.
pool=$1 root=$2
shift 2
columns=name,property,value,received,source
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
printf "=datasets\n"
zfs get -Hp -t filesystem,volume -o "$columns" all "$@" || exit
zfs get -Hp -r -t filesystem,volume -o "$columns" all "$root" || exit
printf "=marks\n"
zfs list -Hp -r -t snapshot,bookmark -o name,guid,createtxg "$root" || exit
# Holds of snapshots that have any, and what users may do: neither comes with a stream.
printf "=holds\n"
zfs list -Hp -r -t snapshot -o userrefs,name "$root" | sed -n "s/^[1-9][0-9]*	//p" | while IFS= read -r snapshot; do
  zfs holds -H "$snapshot"
done
printf "=allowed\n"
zfs list -H -r -o name -t filesystem,volume "$root" | while IFS= read -r dataset; do
  zfs allow "$dataset" 2>/dev/null | sed "s|^|$dataset	|"
done
printf "=users\n"
getent passwd
printf "=groups\n"
getent group
printf "=end\n"

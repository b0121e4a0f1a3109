#!/bin/sh
# shellcheck shell=dash
# Prints all datasets and snapshots of a pool, and who uses its volumes and files. Of a pool that is not there the end alone.
# Devices of others by real paths, which show of no volume its name. Argument: the pool.
pool=$1
said=$(zpool list -H -o name "$pool" 2>&1) || case $said in
  *"no such pool"*)
    printf "=end\n"
    exit 0 ;;
  *)
    printf "%s\n" "$said" >&2
    exit 1 ;;
esac
printf "=datasets\n"
zfs list -Hp -r -t filesystem,volume -o name,type,guid,written,poolferry:flags,poolferry:placeholder,poolferry:waits,canmount,mounted,mountpoint "$pool" || exit
printf "=snapshots\n"
zfs list -Hp -r -t snapshot -s createtxg -o name,guid,creation "$pool" || exit
printf "=mounts\n"
cut -d " " -f 1,2 /proc/self/mounts
printf "=pools\n"
zpool list -HvPL || exit
printf "=blocks\n"
lsblk -rnpo KNAME,PKNAME || exit
printf "=loops\n"
losetup -nlO NAME,BACK-FILE || exit
printf "=volumes\n"
[ ! -d /dev/zvol ] || find /dev/zvol -type l -printf "%p\t%l\n"
printf "=end\n"

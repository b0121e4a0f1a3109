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
datasets=$(zfs list -Hp -r -t filesystem,volume -o name,type,guid,written,canmount,mounted "$pool") || exit
printf "%s\n" "$datasets"
# What an owner may give a value of several lines is asked for one by one, and printed on one line.
on_one_line() { printf "%s\t%s\t%s\n" "$1" "$2" "$(zfs get -H -o value "$2" "$1" | tr "\n" " ")"; }
tab=$(printf "\t")
printf "=owned\n"
marked=$(
  zfs get -H -r -t filesystem,volume -s local,received,inherited -o name,property \
    poolferry:flags,poolferry:placeholder,poolferry:waits "$pool"
) || exit
[ -z "$marked" ] || printf "%s\n" "$marked" | while IFS=$tab read -r name property; do on_one_line "$name" "$property"; done
printf "%s\n" "$datasets" | while IFS=$tab read -r name _ _ _ canmount mounted; do
  [ "$canmount $mounted" != "on no" ] || on_one_line "$name" mountpoint
done
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

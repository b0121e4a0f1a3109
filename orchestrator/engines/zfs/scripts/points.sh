#!/bin/sh
# shellcheck shell=dash
# Prints name and time of a dataset's snapshots, oldest first; nothing for one that is not there, though its pool is.
# Argument: the dataset.
dataset=$1
pool=${dataset%%/*}
health=
kernel=/proc/spl/kstat/zfs/$pool/state
[ ! -r "$kernel" ] || read -r health < "$kernel"
# zfs would wait for such a pool, perhaps for ever.
case $health in SUSPENDED | FAULTED | UNAVAIL)
  printf "cannot open '%s': pool I/O is currently suspended\n" "$pool" >&2
  exit 1 ;;
esac
exec 3>&1
said=$(zfs list -Hp -d 1 -t snapshot -s createtxg -o name,creation "$dataset" 2>&1 >&3) || case $said in
  *"does not exist"*)
    [ -n "$health" ] || zpool list -H -o name "$pool" > /dev/null || exit ;;
  *)
    printf "%s\n" "$said" >&2
    exit 1 ;;
esac

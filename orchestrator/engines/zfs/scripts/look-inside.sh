#!/bin/sh
# shellcheck shell=dash
# Prints the first files of a pool's own dataset, each ended by NUL, then those of its snapshots: @snapshot:file.
# /mnt is covered for this process alone. Arguments: the dataset, the names of its snapshots.
dataset=$1
shift
# OpenZFS mounts a snapshot on no folder that holds anything.
[ $# = 0 ] || mount -t tmpfs -o mode=0700 none /mnt || exit
mounted=$(sed -n "s|^$dataset \([^ ]*\) zfs .*|\1|p" /proc/mounts | head -n 1)
if [ -n "$mounted" ]; then
  mount --bind "$(printf %b "$mounted")" /mnt || exit
else
  mount_safely ro,zfsutil "$dataset" /mnt || exit
fi
{
  find /mnt -xdev -mindepth 1 ! -type d -printf "%P\0" || printf "what cannot be read\0"
  umount /mnt
  for snapshot do
    if mount_safely ro "$dataset@$snapshot" /mnt; then
      find /mnt -xdev -mindepth 1 ! -type d -printf "@$snapshot:%P\0" || printf "@%s:what cannot be read\0" "$snapshot"
      umount /mnt
    else
      printf "@%s:what cannot be read\0" "$snapshot"
    fi
  done
} | head -z -n 6
umount /mnt 2>/dev/null || :

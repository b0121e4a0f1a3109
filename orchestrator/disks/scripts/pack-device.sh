#!/bin/sh
# shellcheck shell=dash disable=SC2154
# Prints an archive of the recovery kits on a device, or on a part of it. Nothing is changed there: filesystems are mounted
# read-only without even replaying a journal, a pool is imported read-only and exported again. Nothing on it is run or followed.
# Arguments: the device, then kinds of filesystems, each with the mount options that change nothing.
device=$1
shift
imported=
leave() {
  [ -n "$imported" ] || return 0
  cd / || :
  umount /mnt/*
  zpool export "$imported"
}
trap leave EXIT
mount -t tmpfs none /mnt || exit
# A pool of a machine that is lost was not exported there: hence -f, which is safe where nothing is written.
import_pool() {
  zpool import -f -N -o readonly=on -o cachefile=none -d "$1" -t "$2" poolferry-look ||
    zpool import -f -N -o readonly=on -o cachefile=none -t "$2" poolferry-look
}
look_at_pool() {
  guid=$(blkid -p -o value -s UUID "$1")
  pool=$(zpool list -H -o guid,name | sed -n "s/^$guid	//p")
  if [ -z "$pool" ]; then
    import_pool "$1" "$guid" || exit
    imported=poolferry-look
    pool=$imported
  fi
  mount_kit_datasets "$pool"
}
look_at() {
  part=$1
  shift
  kind=$(blkid -p -o value -s TYPE "$part")
  case $kind in
    zfs_member)
      look_at_pool "$part"
      return ;;
    crypto_LUKS)
      printf "%s is locked\n" "$part" >&2
      exit 1 ;;
  esac
  while [ $# -ge 2 ]; do
    [ "$1" != "$kind" ] || mount_next "$1" "$2" "$part" || exit
    shift 2
  done
}
if [ ! -b "$device" ]; then
  printf "%s is no device that is here\n" "$device" >&2
  exit 1
fi
for part in $(lsblk -nrpo PATH "$device"); do
  look_at "$part" "$@"
done
[ "$number" = 0 ] || pack_mounts

#!/bin/sh
# shellcheck shell=dash
# Prints for datasets what changed in them since a snapshot of theirs: a line "=dataset NAME", "=at FOLDER", what `zfs diff`
# prints, and "=end". Without that last line it could not be seen, or is too much. /mnt is covered for this process alone.
# Arguments: how many lines at most, then snapshots.
# zfs diff shows only what is mounted; it leaves out files of which nothing but the access time changed.
most=$1
shift
mounted_at() {
  escaped=$(printf "%s" "$1" | sed 's/ /\\040/g')
  while read -r device folder kind _; do
    if [ "$kind" = zfs ] && [ "$device" = "$escaped" ]; then
      printf "%s\n" "$folder"
      return
    fi
  done < /proc/self/mounts
}
for snapshot in "$@"; do
  dataset=${snapshot%%@*} ours=
  folder=$(mounted_at "$dataset")
  if [ -z "$folder" ]; then
    mount_safely ro,zfsutil "$dataset" /mnt || continue
    folder=/mnt ours=1
  fi
  printf "=dataset %s\n=at %s\n" "$dataset" "$folder"
  {
    zfs diff -HF "$snapshot" "$dataset" && echo "=end"
  } | head -n "$most"
  [ -z "$ours" ] || umount /mnt
done
exit 0

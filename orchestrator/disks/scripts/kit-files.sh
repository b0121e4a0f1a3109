#!/bin/sh
# shellcheck shell=dash
# For other scripts. Finds what may belong to a recovery kit, and mounts where one may lie.
# kit_files FOLDER [ACTION…] does for each what find is to do, and prints it, ended by NUL, where nothing else is named.
# They are regular files alone; restore points and links are not looked into.
kit_files() {
  folder=$1
  shift
  [ $# -gt 0 ] || set -- -print0
  find "$folder" -xdev -maxdepth 7 "(" -name points -o -name latest -o -name lost+found ")" -prune -o -type f "(" \
    -name history.sqlite -o -name configuration.tar -o -name RECOVERY.md -o -name target.json -o -name SHA256SUMS -o -name kit.json \
    -o -path "*/configuration/*.toml" ")" "$@"
}
pack_folder() {
  cd -- "$1" || return
  kit_files . | as_archive
}
# What is mounted below /mnt, which is covered for this process alone.
pack_mounts() {
  cd /mnt || return
  for mounted in *; do
    [ ! -d "$mounted" ] || kit_files "$mounted"
  done | as_archive
  cd / || return
}
as_archive() {
  tar -c --null -T - -f -
}
# mount_next TYPE OPTIONS DEVICE mounts it in the next folder below /mnt; the options say ro. No program in it is run, no device node
# opened, no link followed.
# Why twice: OpenZFS refuses nosymfollow as an option of its own, but Linux sets it on what is mounted, since 5.10.
number=0
mount_next() {
  number=$((number + 1))
  closed=nosuid,nodev,noexec
  mkdir "/mnt/$number" && mount -t "$1" -o "$2,$closed" "$3" "/mnt/$number" || return
  mount -o "remount,bind,ro,$closed,nosymfollow" "/mnt/$number" 2>/dev/null || :
}
# Mounts the datasets for kits at a dataset and below it.
mount_kit_datasets() {
  zfs list -H -o name "$1" > /dev/null || exit
  datasets=$(zfs list -H -o name -t filesystem -r "$1" | grep -E '(^|/)poolferry-kit$')
  IFS='
'
  for dataset in $datasets; do
    mount_next zfs ro "$dataset" || exit
  done
  unset IFS
}

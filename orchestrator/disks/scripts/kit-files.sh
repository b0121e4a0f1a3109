#!/bin/sh
# shellcheck shell=dash
# For other scripts. Finds what may belong to a recovery kit, and mounts where one may lie.
# kit_files FOLDER prints them, each ended by NUL: regular files alone; restore points and links are not looked into.
kit_files() {
  find "$1" -xdev -maxdepth 7 "(" -name points -o -name latest -o -name lost+found ")" -prune -o -type f "(" \
    -name history.sqlite -o -name configuration.tar -o -name RECOVERY.md -o -name target.json -o -name kit.json \
    -o -path "*/configuration/*.toml" ")" -print0
}
pack_folder() {
  cd -- "$1" || return
  kit_files . | as_archive
}
# What is mounted below /mnt, which is covered for this process alone.
pack_mounts() {
  cd /mnt || return
  for mounted in *; do kit_files "$mounted"; done | as_archive
  cd / || return
}
as_archive() {
  tar -c --null -T - -f -
}
# Mounts as the arguments say, in the next folder below /mnt.
number=0
mount_next() {
  number=$((number + 1))
  mkdir "/mnt/$number" && mount "$@" "/mnt/$number"
}
# Mounts the datasets for kits at a dataset and below it. Nothing in them is run, and no device node of them opened.
mount_kit_datasets() {
  zfs list -H -o name "$1" > /dev/null || exit
  datasets=$(zfs list -H -o name -t filesystem -r "$1" | grep -E '(^|/)poolferry-kit$')
  IFS='
'
  for dataset in $datasets; do
    mount_next -t zfs -o ro,nosuid,nodev,noexec "$dataset" || exit
  done
  unset IFS
}

#!/bin/sh
# shellcheck shell=dash
# Prints an archive of the recovery kits at a path on a host, which may mean a folder or a dataset.
# Argument: the path. `print_pack_dataset` prints the whole text of pack-dataset.sh, for a mount namespace of its own.
path=$1
dataset=${path#/}
has_kit() {
  [ -d "$1" ] && [ -n "$(cd -- "$1" && kit_files . -print -quit)" ]
}
if has_kit "$path"; then
  pack_folder "$path"
  exit
fi
if command -v zfs > /dev/null && zfs list -H -o name "$dataset" > /dev/null 2>&1; then
  if [ "$(id -u)" != 0 ]; then
    printf "kits in a dataset are read by root alone: ssh://root@…\n" >&2
    exit 1
  fi
  exec unshare --mount --propagation slave sh -c "$(print_pack_dataset)" pack-dataset.sh "$dataset"
fi
if [ ! -d "$path" ]; then
  printf "%s is no folder there, and %s no dataset\n" "$path" "$dataset" >&2
  exit 1
fi

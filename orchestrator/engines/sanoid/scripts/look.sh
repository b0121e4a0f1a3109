#!/bin/sh
# shellcheck shell=dash
# Prints the machine's time, the datasets with their guids and our marks, an empty line, the root's snapshots with their times, oldest first.
# Arguments: the root, -r for all datasets below it or -d0 for it alone.
root=$1 depth=$2
if ! command -v sanoid > /dev/null; then
  echo "sanoid: not found" >&2
  exit 127
fi
date +%s
zfs list -Hp -o name,guid,poolferry:flags -t filesystem,volume "$depth" "$root" || exit
echo
zfs list -Hp -o creation,name -t snapshot -d 1 -s creation "$root"

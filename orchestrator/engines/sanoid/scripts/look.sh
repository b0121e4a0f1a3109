#!/bin/sh
# shellcheck shell=dash
# Prints the machine's time, the datasets with their guids and our marks, an empty line, the root's snapshots with their times, oldest first.
# Arguments: the root, -r for all datasets below it or -d0 for it alone, "apart" to ask for each mark by itself, else "together".
# A mark stands between the name and the name, as an owner may give hers a value of several lines: then they differ (parse.py).
root=$1 depth=$2 how=$3
if ! command -v sanoid > /dev/null; then
  echo "sanoid: not found" >&2
  exit 127
fi
date +%s
if [ "$how" = together ]; then
  zfs list -Hp -o name,guid,poolferry:flags,name -t filesystem,volume "$depth" "$root" || exit
else
  marked=$(zfs get -H "$depth" -t filesystem,volume -s local,received,inherited -o name poolferry:flags "$root") || exit
  listed=$(zfs list -Hp -o name,guid -t filesystem,volume "$depth" "$root") || exit
  printf "%s\n" "$listed" | while IFS="$(printf "\t")" read -r name guid; do
    mark=-
    if printf "%s\n" "$marked" | grep -qxF "$name"; then
      mark=$(zfs get -H -o value poolferry:flags "$name" | tr "\n\t" "  ")
    fi
    printf "%s\t%s\t%s\t%s\n" "$name" "$guid" "$mark" "$name"
  done
fi
echo
zfs list -Hp -o creation,name -t snapshot -d 1 -s creation "$root"

#!/bin/sh
# shellcheck shell=dash
# Prints the lines of manifests that grep finds; before those of each manifest "=" and its number, "=end" at last.
# Arguments: what grep seeks, the manifests.
pattern=$1
shift
number=0
for manifest in "$@"; do
  printf "=%d\n" "$number"
  number=$((number + 1))
  gzip -dc -- "$manifest" 2>/dev/null | LC_ALL=C grep -a -e "$pattern"
done
printf "=end\n"

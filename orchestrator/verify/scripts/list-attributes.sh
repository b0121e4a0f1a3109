#!/bin/sh
# shellcheck shell=dash
# Prints what getfattr prints of entries of a tree, NUL-terminated. Arguments: the tree, "all", or nothing: only the entries
# that the input names, NUL-terminated.
tree=$1 all=$2
cd -- "$tree" || exit
if ! command -v getfattr >/dev/null; then
  [ -n "$all" ] || cat >/dev/null
  printf "absent\0"
  exit 0
fi
names() {
  if [ -n "$all" ]; then find . -print0 2>/dev/null || or_end 1; else cat; fi
}
names | { xargs -0 -r getfattr -h -d -m - -e hex -- 2>/dev/null || or_end 123; } | tr "\n" "\0"

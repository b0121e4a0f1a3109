#!/bin/sh
# shellcheck shell=dash
# Prints a tree that an rsync with --fake-super wrote: as find lists it; then, after an empty record, what getfattr prints of it; then,
# after a record of two slashes, name and content of each file that stands for a symbolic link. All NUL-terminated.
# Arguments: the tree, find's words.
tree=$1
shift
command -v getfattr > /dev/null || { echo "sh: 1: getfattr: not found" >&2 && exit 127; }
cd -- "$tree" || exit
LC_ALL=C find . "$@" || exit
printf "\0"
{ find . -print0 || or_end 1; } | { xargs -0 -r getfattr -h -d -m - -e hex -- 2>/dev/null || or_end 123; } | tr "\n" "\0"
printf "//\0"
# A link of the source has 4095 bytes at most. getfattr writes odd bytes of a name as \ooo, and printf reads \0ooo.
{ find . -type f -size -9 -print0 || or_end 1; } | { xargs -0 -r getfattr -h -n user.rsync.%stat -e text -- 2>/dev/null || or_end 123; } |
  sed -n '/^# file: /{s///;s/\\\([0-3][0-7][0-7]\)/\\0\1/g;h;};/^user\.rsync\.%stat="12[0-7]\{4\} /{x;p;}' | tr "\n" "\0" |
  xargs -0 -r printf '%b\0' | LC_ALL=C xargs -0 -r grep -zaHZ -m 1 -e "" -- || [ $? = 123 ]

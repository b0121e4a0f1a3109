#!/bin/sh
# shellcheck shell=dash
# Prints size, time and path of each of these files that is there. Arguments: the tree, the files.
cd -- "$1" || exit
shift
for file in "$@"; do
  LC_ALL=C find "./$file" -maxdepth 0 -type f -printf "%s\t%T@\t%p\0" 2>/dev/null
done
exit 0

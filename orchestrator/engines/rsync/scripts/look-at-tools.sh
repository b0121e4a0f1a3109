#!/bin/sh
# shellcheck shell=dash
# Prints the programs on this machine that are missing, or are not those that the other scripts need.
for program in find xargs; do
  "$program" --version 2>/dev/null | grep -q "GNU findutils" || echo "$program"
done
for program in stat mv touch sync head sort; do
  "$program" --version 2>/dev/null | grep -q "GNU coreutils" || echo "$program"
done
flock --version 2>/dev/null | grep -q util-linux || echo flock
command -v getfattr >/dev/null || echo getfattr
exit 0

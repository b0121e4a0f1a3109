#!/bin/sh
# shellcheck shell=dash
# Prints those of the paths at which a point holds something: no empty folder, and not nothing.
# Arguments: the point's tree, the paths.
cd -- "$1" || exit
shift
for path in "$@"; do
  if [ -d "./$path" ] && [ ! -L "./$path" ]; then
    [ -z "$(find "./$path" -mindepth 1 -print -quit)" ] || printf "%s\0" "$path"
  elif [ -e "./$path" ] || [ -L "./$path" ]; then
    printf "%s\0" "$path"
  fi
done

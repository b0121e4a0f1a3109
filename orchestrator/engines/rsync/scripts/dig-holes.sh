#!/bin/sh
# shellcheck shell=dash
# Makes holes in files of a work tree where the same file has some in a point. Arguments: the point's tree, the work tree. The
# input names the files, NUL-terminated.
# Names without ./ before them would be words of find's own.
# Why find first: it tells which of them are there, and only large ones are worth a look.
set -e
point=$1 work=$2
enter_place "$point"
export LC_ALL=C
# shellcheck disable=SC2016
LC_ALL=C grep -az "^\./" | xargs -0 -r sh -c 'find "$@" -maxdepth 0 -type f -size +127k -printf "%b %s %p\0" 2>/dev/null || true' sh | tr "\n\0" "\0\n" |
  while read -r blocks size path; do
    [ $((blocks * 512 + 65536)) -le "$size" ] || continue
    case $path in */*) folder=${path%/*} ;; *) folder=. ;; esac
    (
      enter_place "$work"
      enter_folder "${folder#./}"
      name=${path##*/}
      lone_file "$name" || exit 0
      time=$(stat -c %.9Y -- "./$name")
      # Not every filesystem has holes.
      fallocate --dig-holes "./$name" 2>/dev/null || true
      touch -m -d "@$time" -- "./$name"
    ) || true
  done

#!/bin/sh
# shellcheck shell=dash
# Renames away what lies at a destination, makes the folder, closes it to everybody else until it is whole, and marks it.
# Arguments: the destination, the name for what lies there (or nothing), the marker's text, "unfinished" when an
# earlier restore is gone on with (or nothing), then the names in the folder that lead to what is mounted below.
set -e
to=$1 aside=${2##*/} marker=$3 unfinished=$4
shift 4
name=${to##*/}
enter_place "${to%/*}/" make
if [ -n "$aside" ]; then
  mv -T -n -- "./$name" "./$aside"
  [ ! -e "./$name" ]
fi
[ -z "$name" ] || [ -L "./$name" ] || [ -d "./$name" ] || mkdir -m 0700 -- "./$name"
enter_place "$to"
is=$(stat -c "%u:%g %a" .) was=open
# shellcheck disable=SC3067
if [ -O . ]; then case $is in *00) was=closed ;; esac; fi
# First the owner: who owns it opens it again. A filesystem that keeps neither is left as it is.
[ "${is% *}" = 0:0 ] || [ "$(id -u)" != 0 ] || chown 0:0 . 2> /dev/null || true
[ "${is#* }" = 700 ] || chmod 0700 . 2> /dev/null || true
be_ours "$to"
if [ -n "$unfinished" ]; then
  be_marked "$to"
  # Others could enter it: what they may have laid in the way of a half-copied file goes.
  [ "$was" = closed ] || find . -xdev -name ".~poolferry-partial~" ! \( -type d -user "$(id -u)" \) \
    -prune -execdir rm -rf -- {} ";"
else
  # It was empty when it was looked at; what came in before it was closed is not ours to replace.
  for entry in * .*; do
    if [ -e "./$entry" ] || [ -L "./$entry" ]; then
      for known in . .. "$@"; do [ "$entry" != "$known" ] || continue 2; done
      echo "$entry has come into $to meanwhile, and a restore overwrites nothing" >&2
      exit 1
    fi
  done
fi
mark "$marker"

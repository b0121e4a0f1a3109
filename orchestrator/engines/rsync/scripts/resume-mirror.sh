#!/bin/sh
# shellcheck shell=dash
# Makes an unfinished mirror fit to go on: what a killed rsync left in our own folder is laid where the next one looks,
# and what lies between the owner's files is removed. Arguments: the mirror's root; "anew", where no half-copied file is gone on with.
# Why -execdir and no names from a listing: users own folders of a mirror, and may put links there at any time.
set -e
enter_place "$1"
enter_room .poolferry
for half in temporary/* temporary/.*; do
  if [ -f "$half" ] && [ ! -L "$half" ]; then
    name=${half#temporary/}
    mv -T -- "$half" "partial/${name%.??????}"
  fi
done
[ "$2" != anew ] || find partial -mindepth 1 -delete
since=$PWD/work
enter_place "$1"
find . -xdev -path ./.poolferry -prune -o -name ".~poolferry-partial~" -prune -execdir rm -rf -- {} ";" || true
find . -xdev -path ./.poolferry -prune -o -type f -perm 600 -links 1 -newer "$since" -regextype posix-extended \
  -regex ".*/\.[^/]+\.[A-Za-z0-9]{6}" -execdir rm -f -- {} ";" || true

#!/bin/sh
# shellcheck shell=dash
# Prints size and path of what interrupted copying left in the work tree: files in partial folders, and rsync's orphaned
# temporaries. A file with a second name is none of them: it is shared with an older point.
# Arguments: the tree, "own" to pass over what other users may have made, and filesystems that are mounted in it, or nothing.
work=$1
# A partial folder is closed to others, whoever owns the files in it.
if [ -n "${2-}" ]; then
  set -- -xdev -type f \( -path "*/.~poolferry-partial~/*" -o -user "$(id -u)" \)
else
  set -- -type f
fi
LC_ALL=C find "$work/" "$@" -links 1 -size +0 -regextype posix-extended \
  -regex ".*/(\.~poolferry-partial~/[^/]+|\.[^/]+\.[A-Za-z0-9]{6})" -printf "%s %P\0"

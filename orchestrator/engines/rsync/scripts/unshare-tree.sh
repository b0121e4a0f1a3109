#!/bin/sh
# shellcheck shell=dash
# Removes from a cut work tree what shares its inode with a point. Argument: the work tree.
# Why: rsync changes owner, mode, times, ACL and attributes of a file that is there in place, and so those of the point. The
# copy links it again, or copies it where it is no longer the same.
# What has all its names in this tree belongs to it alone, and stays: hard links of the source, up to so many of them.
set -e
most=1000
enter_place "$1"
own=$(
  find . -xdev ! -type d -links +1 -printf "%i %n\n" | sort | uniq -c | while read -r count inode names; do
    [ "$count" != "$names" ] || echo "$inode"
  done | head -n "$most"
)
set -- -false
for inode in $own; do set -- "$@" -o -inum "$inode"; done
find . -xdev ! -type d -links +1 ! \( "$@" \) -delete

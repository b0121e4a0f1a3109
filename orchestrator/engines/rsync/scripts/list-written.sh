#!/bin/sh
# shellcheck shell=dash
# Prints the files of a mirror that changed since its unfinished run began, NUL-terminated, up to so many; an empty name means all of them.
# Arguments: the mirror's root, the number.
enter_place "$1"
since=$(stat -c %Y .poolferry/work) || exit
# Those known to keep a time of change of their own, which no rsync sets.
case $(stat -f -c %T .) in
  ext2/ext3 | xfs | btrfs | tmpfs | zfs | f2fs | nfs | overlayfs) ;;
  *) printf "\0" && exit ;;
esac
# Three seconds, as some count in whole ones. What a find that failed did not list is not known.
{
  find . -xdev -path ./.poolferry -prune -o -type f -newerct "@$((since - 3))" -printf "%P\0" || printf "\0"
} | head -z -n "$2"

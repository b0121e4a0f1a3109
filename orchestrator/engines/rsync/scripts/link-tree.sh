#!/bin/sh
# shellcheck shell=dash
# Links all of a point into the new work tree, and then removes there what its input names, NUL-terminated, with all below it: what
# differs at the source. Prints after each 1,000 entries how many were linked. Arguments: the target's root, the point.
# Why paths: nobody but us can enter either tree, and for these programs no link in them leads anywhere.
set -e
root=$1 point=$2
enter_place "$root"
enter_room .poolferry
if [ -L ../points ] || [ -L "../points/$point" ] || [ -L work ]; then exit 1; fi
old=${PWD%/.poolferry}/points/$point new=$PWD/work
# They may outlive a broken link: then they hold the lock until they end, so that no run begins beside them.
exec 6< lock
flock -s -w 60 -E 75 6
# shellcheck disable=SC2016
link='cd -P "$2/." && [ -z "$(ls -A)" ] || exit
{ failed=$({ { cp -alv -- "$1/." . || echo "$?" >&3; } | perl -ne "$3" >&4; } 3>&1); } 4>&1
[ -z "$failed" ] || exit "$failed"
exec xargs -0 -r rm -rf --one-file-system --'
# shellcheck disable=SC2016
count='$| = 1; print "$.\n" unless $. % 1000'
without_links 77 "78=$old" "79=$new" -- sh -c "$link" link-tree.sh /proc/self/fd/78 /proc/self/fd/79 "$count"

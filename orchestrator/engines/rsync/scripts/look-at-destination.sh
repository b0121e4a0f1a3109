#!/bin/sh
# shellcheck shell=dash
# Prints what lies at a destination, NUL-separated: kind, our marker, number of entries, its real path, where this machine
# has something mounted, the first names. Argument: the destination.
to=$1
if [ -L "$to" ] && [ ! -e "$to" ]; then printf "other\0"; exit 0; fi
if [ ! -e "$to" ]; then printf "absent\0"; exit 0; fi
if [ ! -d "$to" ]; then printf "other\0"; exit 0; fi
printf "folder\0"
# The folder may be a user's: a link there is not followed, a FIFO not waited for, and nothing large is read. A marker that
# is not ours is an entry like any other; an NFS server may give to nobody all that root makes.
marker=$to/.poolferry-restoring.json
# shellcheck disable=SC3067
if [ -f "$marker" ] && { [ -O "$marker" ] || [ "$(stat -f -c %T -- "$to/")" = nfs ]; }; then
  dd if="$marker" iflag=nofollow,nonblock bs=1M count=1 status=none 2>/dev/null
fi
printf "\0"
{ find "$to/" -mindepth 1 -maxdepth 1 -printf "x\n" || or_end 0; } | wc -l
printf "\0"
(cd -- "$to" && pwd -P)
printf "\0"
cut -d " " -f 5 /proc/self/mountinfo 2>/dev/null
printf "\0"
find "$to/" -mindepth 1 -maxdepth 1 -printf "%P\0" | head -z -n 10

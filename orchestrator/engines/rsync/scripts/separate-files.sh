#!/bin/sh
# shellcheck shell=dash
# Removes from a mirror what is about to be changed in place and has another name elsewhere; the copy that follows makes it anew.
# Arguments: the mirror's root, and "all" to look at the whole mirror; else the input names what is looked at, NUL-terminated.
# Why: users own folders of a mirror, and may give a file of somebody else's a name there; rsync would give that file her owner and
# mode. What has all its names in the mirror stays: hard links of the source.
# Why by inodes: no name of the input leads anywhere, also when a folder is exchanged for a link meanwhile.
set -e
enter_place "$1"
how=${2-}
foreign() {
  { find . -xdev -path ./.poolferry -prune -o ! -type d -links +1 -printf "%i %n\n" || or_end 1; } | sort | uniq -c |
    while read -r count inode names; do
      [ "$count" = "$names" ] || echo "$inode"
    done
}
if [ -n "$how" ]; then
  inodes=$(foreign)
else
  # shellcheck disable=SC2016
  named=$(xargs -0 -r sh -c 'find "$@" -maxdepth 0 ! -type d -links +1 -printf "%i\n" 2>/dev/null || true' sh | sort -u)
  [ -n "$named" ] || exit 0
  inodes=$(foreign | grep -Fx -e "$named" || true)
fi
set -- -false
for inode in $inodes; do
  set -- "$@" -o -inum "$inode"
  if [ $# -gt 2000 ]; then
    find . -xdev -path ./.poolferry -prune -o ! -type d \( "$@" \) -execdir rm -f -- {} ";" || true
    set -- -false
  fi
done
[ $# = 1 ] || find . -xdev -path ./.poolferry -prune -o ! -type d \( "$@" \) -execdir rm -f -- {} ";" || true

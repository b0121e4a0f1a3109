#!/bin/sh
# shellcheck shell=dash
# Takes points out of sight by one rename each, then removes them. Arguments: the target's root, the points.
set -e
root=$1
shift
# A user who is not root cannot remove what lies in a folder that he may not write to, though it is his own.
open() {
  [ "$(id -u)" = 0 ] || [ ! -d "$1" ] || find "$1" -type d ! -perm -u+rwx -execdir chmod u+rwx {} ";"
}
empty_trash() {
  open ./trash
  rm -rf --one-file-system -- ./trash
}
enter_place "$root"
[ -d .poolferry ] || (umask 077; mkdir .poolferry)
enter_room .poolferry
empty_trash
(umask 077; mkdir ./trash)
if [ $# -gt 0 ] && [ -d ../points ]; then
  cd -P ..
  enter_room points
  for point in "$@"; do
    if [ -e "./$point" ]; then
      [ -w "./$point" ] || chmod u+w "./$point"
      mv -T -- "./$point" "../.poolferry/trash/$point"
    fi
    rm -f -- "./$point.manifest.gz" "./$point.damaged"
  done
  enter_place "$root"
  enter_room .poolferry
fi
empty_trash

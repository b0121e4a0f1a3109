#!/bin/sh
# shellcheck shell=dash
# Takes points out of sight by one rename each, then removes them. Arguments: the target's root, the points.
set -e
cd -P -- "$1"
shift
# A user who is not root cannot remove what lies in a folder that he may not write to, though it is his own.
open() {
  [ "$(id -u)" = 0 ] || [ ! -d "$1" ] || find "$1" -type d ! -perm -u+rwx -execdir chmod u+rwx {} ";"
}
open .poolferry/trash
rm -rf --one-file-system -- .poolferry/trash
(umask 077; mkdir -p .poolferry/trash)
for point in "$@"; do
  if [ -e "points/$point" ]; then
    [ -w "points/$point" ] || chmod u+w "points/$point"
    mv -T -- "points/$point" ".poolferry/trash/$point"
  fi
  rm -f -- "points/$point.manifest.gz" "points/$point.damaged"
done
open .poolferry/trash
rm -rf --one-file-system -- .poolferry/trash

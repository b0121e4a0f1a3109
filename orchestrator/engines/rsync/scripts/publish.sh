#!/bin/sh
# shellcheck shell=dash
# Everything to the disk, then manifest, tree and `latest` get their names, each by one rename.
# Arguments: the target's root, the point's name, its manifest.
set -e
root=$1 name=$2 manifest=$3
cd -P -- "$root"
sync -f .poolferry/work
(umask 077; mkdir -p points)
[ ! -L points ]
mv -T -- "$manifest" "points/$name.manifest.gz"
# A folder that its owner may not write to cannot be moved by him: its .. changes.
mode=$(stat -c "%a" .poolferry/work)
[ -w .poolferry/work ] || chmod u+w .poolferry/work
mv -T -n -- .poolferry/work "points/$name"
[ ! -e .poolferry/work ]
[ "$(stat -c "%a" "points/$name")" = "$mode" ] || chmod "$mode" "points/$name"
ln -s -f -n -- "points/$name" .poolferry/latest
mv -T -- .poolferry/latest latest
sync -f .

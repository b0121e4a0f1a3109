#!/bin/sh
# shellcheck shell=dash
# Everything to the disk, then manifest, tree and `latest` get their names, each by one rename.
# Arguments: the target's root, the point's name, its manifest.
# Why by "..": nobody else can move our folders into another one, while a name in the root may be exchanged.
set -e
root=$1 name=$2 manifest=${3##*/}
enter_place "$root"
[ -d points ] || (umask 077; mkdir points)
enter_room .poolferry
[ ! -L ../points ]
sync_noted work
mv -T -- "./$manifest" "../points/$name.manifest.gz"
# A folder that its owner may not write to cannot be moved by him: its .. changes.
mode=
[ -w work ] || { mode=$(stat -c "%a" work) && chmod u+w work; }
mv -T -n -- work "../points/$name"
[ ! -e work ]
[ -z "$mode" ] || chmod "$mode" "../points/$name"
ln -s -f -n -- "points/$name" latest
mv -T -- latest ../latest
sync -f .

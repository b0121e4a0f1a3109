#!/bin/sh
# shellcheck shell=dash
# Prints properties that tell the free space, then name, createtxg and creation of the root's snapshots.
# Arguments: the pool, the nearest dataset that is there, the root.
pool=$1 nearest=$2 root=$3
zpool get -Hp -o property,value freeing "$pool" || exit
zfs get -Hp -o property,value available,compression,dedup "$nearest" || exit
[ "$nearest" != "$root" ] || zfs list -Hp -r -t snapshot -o name,createtxg,creation "$root"

#!/bin/sh
# shellcheck shell=dash
# Mounts scratch copies. Nobody but root enters their folder, whatever owners and modes the copies hold; and no program or
# device node of theirs gains anybody rights. Arguments: the folder of all scratch copies, then datasets.
folder=$1
shift
install -d -m 0755 "${folder%/*}" || exit
install -d -m 0700 "$folder" || exit
status=0
for dataset in "$@"; do
  zfs mount -o nosuid,nodev "$dataset" || status=1
done
[ "$status" = 0 ]

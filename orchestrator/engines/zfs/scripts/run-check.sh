#!/bin/sh
# shellcheck shell=dash
# Mounts datasets below a folder, and runs a program there. No program or device node of theirs gains anybody rights.
# Arguments: the folder, then datasets each with its folder below that one, a dash, the program and its arguments.
folder=$1
shift
mkdir -p "$folder" || exit
while [ "$1" != - ]; do
  dataset=$1 below=$2
  shift 2
  mkdir -p "$folder/$below" || exit
  mount -t zfs -o nosuid,nodev "$dataset" "$folder/$below" || exit
done
shift
cd "$folder" || exit
exec "$@"

#!/bin/sh
# shellcheck shell=dash
# Prints name, property and value: of snapshots the guid, of datasets their newest snapshot. What is not there is left out.
# Arguments: datasets and snapshots.
exec 3>&1
said=$(zfs get -Hp -o name,property,value guid,prevsnap "$@" 2>&1 >&3) ||
  said=$(printf "%s\n" "$said" | grep -v "does not exist")
if [ -n "$said" ]; then
  printf "%s\n" "$said" >&2
  exit 1
fi

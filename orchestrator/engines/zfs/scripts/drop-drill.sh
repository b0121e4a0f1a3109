#!/bin/sh
# shellcheck shell=dash
# Destroys what a restore test made, if it is there. What it lies in goes too, where a restore test made that and nothing else
# is in it. Arguments: the dataset, the property that marks what restore tests make.
dataset=$1 property=$2
zfs list "$dataset" > /dev/null 2>&1 || exit 0
if [ "$(zfs get -Ho source "$property" "$dataset")" != local ]; then
  printf "%s was made by no drill\n" "$dataset" >&2
  exit 1
fi
zfs destroy -r "$dataset" || exit
above=${dataset%/*}
[ "$(zfs get -Ho source "$property" "$above")" != local ] || zfs destroy "$above" 2>/dev/null || :

#!/bin/sh
# shellcheck shell=dash
# Destroys a scratch copy. Clones of others in it keep it; nothing without our property is touched.
# Arguments: the dataset, the property that marks scratch copies.
dataset=$1 property=$2
if [ "$(zfs get -Ho source "$property" "$dataset")" != local ]; then
  printf "%s is no scratch copy\n" "$dataset" >&2
  exit 1
fi
zfs destroy -r "$dataset"

#!/bin/sh
# shellcheck shell=dash
# Ends with 1 when a snapshot is another than it should be. Arguments: the snapshot, its guid.
snapshot=$1 expected=$2
guid=$(zfs get -Hpo value guid "$snapshot") || exit
if [ "$guid" != "$expected" ]; then
  printf "%s has the guid %s, and should have %s\n" "$snapshot" "$guid" "$expected" >&2
  exit 1
fi

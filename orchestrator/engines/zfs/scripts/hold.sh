#!/bin/sh
# shellcheck shell=dash
# Holds snapshots, so that nothing destroys them. One that has the tag already is fine, and one that is gone since the look: its
# own send says so. Arguments: the tag, the snapshots.
said=$(in_eight hold "$@" | grep -v -e "^$" -e "tag already exists" -e "dataset does not exist")
if [ -n "$said" ]; then
  printf "%s\n" "$said" >&2
  exit 1
fi

#!/bin/sh
# shellcheck shell=dash
# Releases held snapshots. One without the tag, and one that is gone, are fine. Arguments: the tag, the snapshots.
said=$(in_eight release "$@" | grep -v -e "^$" -e "no such tag" -e "does not exist")
if [ -n "$said" ]; then
  printf "%s\n" "$said" >&2
  exit 1
fi

#!/bin/sh
# shellcheck shell=dash
# Reads the beginning of a snapshot's raw stream, which needs no key: zfs verifies the checksum of each block on the way.
# Arguments: the snapshot, how many bytes. A sender whose reader has enough ends badly; one that ends by itself has sent all.
snapshot=$1 bytes=$2
seen=$(
  {
    {
      zfs send -w "$snapshot"
      printf "status %s\n" "$?" >&4
    } | head -c "$bytes" | wc -c | sed "s/^ */read /" >&4
  } 4>&1
)
read=$(printf "%s\n" "$seen" | sed -n "s/^read //p")
status=$(printf "%s\n" "$seen" | sed -n "s/^status //p")
[ "$read" = "$bytes" ] || [ "$status" = 0 ] || exit 1

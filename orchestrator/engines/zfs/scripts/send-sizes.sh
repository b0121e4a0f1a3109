#!/bin/sh
# shellcheck shell=dash
# Prints "size N" for each send, as its dry run tells it; "size -" where that cannot be known.
# Arguments: for each send its flags, its mode (-i, -I, -t or nothing), its base or token, and its snapshot.
while [ $# -ge 4 ]; do
  flags=$1 mode=$2 base=$3 snapshot=$4
  told=$(
    case $mode in
      "") zfs send "${flags}n" "$snapshot" ;;
      -t) zfs send "${flags}n" -t "$base" ;;
      *) zfs send "${flags}n" "$mode" "$base" "$snapshot" ;;
    esac 2>/dev/null
  )
  printf "%s\nsize\t-\n" "$told" | grep -m 1 "^size"
  shift 4
done
exit 0

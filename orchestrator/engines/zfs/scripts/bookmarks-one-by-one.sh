#!/bin/sh
# shellcheck shell=dash
# Creates bookmarks, each with a program of its own, for users who may run no channel program. One that is there already is
# fine, and a snapshot that is gone since the look: its own send says so. Arguments: dataset, snapshot with its @, and bookmark of each.
create() {
  said=$(zfs bookmark "$1$2" "$1#$3" 2>&1) || case $said in
    *"bookmark exists"* | *"dataset does not exist"*) ;;
    *)
      printf "%s\n" "$said" | head -n 1 >&2
      echo failed ;;
  esac
}
# Eight at once: each waits for the pool's next transaction, which they then share.
failures=$(
  begun=0
  while [ $# -ge 3 ]; do
    create "$1" "$2" "$3" &
    shift 3
    begun=$((begun + 1))
    [ $((begun % 8)) -ne 0 ] || wait
  done
  wait
)
[ -z "$failures" ]

#!/bin/sh
# shellcheck shell=dash
# Destroys bookmarks. One that is gone is fine; what has no # in its name is not touched. Arguments: their whole names.
# Where a function `destroy_together` stands before this script, it does so in one transaction, or fails.
! command -v destroy_together > /dev/null || ! destroy_together "$@" || exit 0
destroy() {
  case $1 in
    *"#"*) ;;
    *)
      echo failed
      return ;;
  esac
  said=$(zfs destroy "$1" 2>&1) || case $said in
    *"does not exist"*) ;;
    *)
      printf "%s\n" "$said" | head -n 1 >&2
      echo failed ;;
  esac
}
# Eight at once: each waits for the pool's next transaction, which they then share.
failures=$(
  begun=0
  for bookmark in "$@"; do
    destroy "$bookmark" &
    begun=$((begun + 1))
    [ $((begun % 8)) -ne 0 ] || wait
  done
  wait
)
[ -z "$failures" ]

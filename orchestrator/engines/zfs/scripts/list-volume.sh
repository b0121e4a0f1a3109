#!/bin/sh
# shellcheck shell=dash
# Prints a volume's snapshot with its digest, as list-tree.sh prints a tree of one file.
# Arguments: the snapshot, the algorithm.
work() {
  device=/dev/zvol/$1 algorithm=$2
  bytes=$(blockdev --getsize64 "$device") || return
  printf "//f\t%s\t0.0000000000\t0\t0\t0\t1\t0\t\0" "$bytes"
  if digest=$("${algorithm}sum" < "$device" 2>&1); then
    printf "//=%s:%s\0" "$algorithm" "${digest%% *}"
  else
    printf "//!%s\0" "$digest"
  fi
  printf "//~\0"
}
work_alone "$@"

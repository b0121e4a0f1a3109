#!/bin/sh
# shellcheck shell=dash
# For other scripts. in_eight VERB TAG SNAPSHOT… runs `zfs VERB TAG` for all snapshots, and prints what zfs says.
# Why eight programs side by side: zfs waits for the pool's next transaction once for each snapshot, and they share it.
in_eight() {
  verb=$1 tag=$2
  shift 2
  for turn in 0 1 2 3 4 5 6 7; do
    [ "$turn" -lt $# ] || break
    every_eighth "$@" &
  done
  wait
}
# Runs one of the programs, for every eighth snapshot from its turn on.
every_eighth() {
  at=0
  for snapshot in "$@"; do
    # Its own are gathered in place of all. Why not by shifting: each addition copies the whole list.
    [ "$at" -gt 0 ] || set --
    [ $((at % 8)) -ne "$turn" ] || set -- "$@" "$snapshot"
    at=$((at + 1))
  done
  [ $# -gt 0 ] || return 0
  zfs "$verb" "$tag" "$@" 2>&1
  status=$?
  # 1 is a failure that zfs has told; with more it may have died without a word.
  [ "$status" -le 1 ] || printf "zfs %s ended with %s\n" "$verb" "$status"
}

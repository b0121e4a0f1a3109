#!/bin/sh
# shellcheck shell=dash
# For other scripts. run_sanoid FOLDER TEXT USE WORD… runs sanoid with these words, and prints what it says. It sets
# $folder, and $errors: the file that holds its stderr.
# FOLDER holds sanoid.conf and what sanoid keeps between runs. Nothing: a folder is made that lives as long as the script,
# with TEXT as its sanoid.conf. USE: another folder to take sanoid.conf from, or nothing.
run_sanoid() {
  folder=$1 text=$2 use=$3
  shift 3
  if [ -z "$folder" ]; then
    folder=$(mktemp -d) || exit
    trap 'rm -rf -- "$folder"' EXIT
    trap 'trap "" HUP INT TERM; exit 143' HUP INT TERM
    printf "%s" "$text" > "$folder/sanoid.conf"
  fi
  mkdir -p -- "$folder" || exit
  errors=$folder/errors
  # sanoid believes its own list of snapshots for a quarter of an hour, and --force-update renews it too late for this run.
  rm -f -- "$folder/snapshots.txt"
  # It names snapshots by local time, which has one hour twice in autumn.
  TZ=UTC sanoid --configdir="${use:-$folder}" --cache-dir="$folder" --run-dir="$folder" --verbose "$@" 2> "$errors"
  code=$?
  cat -- "$errors" >&2
  [ "$code" = 0 ] || exit "$code"
}

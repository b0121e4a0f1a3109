#!/bin/sh
# shellcheck shell=dash
# For other scripts. work_alone ARGUMENTS… runs their `work` with these arguments, and removes after it the temporary folder
# $scratch and what `work` mounted at $scratch/mount, however it ends.
# A lonely newline on stderr from time to time says that digests go on; where nobody hears it any more, we end. The first one
# is for who was killed before the kernel knew that we are to end with them. It then tells us once for each thread of theirs, and
# what comes within `clean_up` would end it half-way: a trap ignores what follows before it leaves. A child so young that it still
# has our traps forgets the first signal, so the beat is told until it is gone.
clean_up() {
  status=$?
  trap "" HUP INT TERM PIPE
  cd / || :
  [ -z "$pulse" ] || while kill "$pulse" 2> /dev/null; do sleep 0.02; done
  [ -z "$killed" ] || { kill 0; sleep 0.1; kill 0; wait; }
  umount "$scratch/mount" 2>/dev/null || umount -l "$scratch/mount" 2>/dev/null
  rmdir "$scratch/mount" && rm -rf "$scratch"
  exit "$status"
}
# Says from time to time that bytes are still read.
beat() {
  sleeper=
  trap "" PIPE
  trap '[ -z "$sleeper" ] || kill "$sleeper"; exit' TERM
  before=
  while :; do
    sleep 20 > /dev/null 2>&1 &
    sleeper=$!
    wait "$sleeper"
    bytes=$(for reader in $(pgrep -g 0 sum); do grep rchar "/proc/$reader/io"; done 2>&1)
    [ "$bytes" = "$before" ] || echo >&2 || kill "$$"
    before=$bytes
  done
}
work_alone() {
  export LC_ALL=C
  umask 077
  echo >&2 || exit
  killed=
  pulse=
  scratch=$(mktemp -d) || exit
  trap clean_up EXIT
  trap 'trap "" HUP INT TERM PIPE; killed=1; exit 143' HUP INT TERM PIPE
  mkdir "$scratch/mount" || exit
  beat &
  pulse=$!
  work "$@" &
  worker=$!
  wait "$worker"
  status=$?
  trap "" HUP INT TERM PIPE
  exit "$status"
}
# mount_here DATASET [rw] mounts it, and goes in.
mount_here() {
  mount_safely "${2:-ro}" "$1" "$scratch/mount" || return
  cd "$scratch/mount" || return
}
# sum_files READERS XARGS-OPTIONS… makes SHA-256 sums of files, whose names xargs takes from its input or a file.
# Why -z: sha256sum alone can end its lines with NUL.
sum_files() {
  at_once=$1
  shift
  # shellcheck disable=SC2016
  xargs -0 -r -n 256 -P "$at_once" "$@" sh -c 'sha256sum -z -- "$@" >> "$0/sha256.$$" 2>> "$0/errors"' "$scratch"
  case $? in 0 | 123) ;; *) return 1 ;; esac
}
print_sums() {
  find "$scratch" -maxdepth 1 -name "sha256.*" -exec cat "{}" + |
    sed -z 's,^\([0-9a-f]*\)  \./\(.*\)$,\2//=sha256:\1,'
}
# Prints what could not be read, which comes on stdin, and the end of the listing.
print_errors() {
  head -n 1000 | sed "s,^,//!," | tr "\n" "\0"
  printf "//~\0"
}

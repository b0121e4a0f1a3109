#!/bin/sh
# shellcheck shell=dash disable=SC2154
# Prints all entries of a filesystem's snapshot with digests, as NUL-ended records; what could not be read; and an end.
# Arguments: the snapshot, the algorithm (xxh128 or sha256), how many readers at once.
work() {
  algorithm=$2 readers=$3
  mount_here "$1" || return
  # Names with a backslash or a line end go to sha256sum, which alone can end its lines with NUL.
  newline=$(printf "\nx")
  odd="*[${newline%x}$(printf "\r")\\\\]*"
  find . -xdev -printf "%P//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%l\0" \
    -type f "(" -path "$odd" -fprint0 "$scratch/odd" -o -fprint0 "$scratch/plain" ")" 2> "$scratch/errors"
  [ $? -le 1 ] || return
  if [ "$algorithm" = xxh128 ]; then
    # xxh128sum ends at the first file that it cannot read, so then it gets them one by one.
    # shellcheck disable=SC2016
    each='xxh128sum "$@" >> "$0/xxh128.$$" 2>/dev/null ||
      for file in "$@"; do xxh128sum "$file"; done >> "$0/xxh128.$$" 2>> "$0/errors"'
    xargs -0 -r -a "$scratch/plain" -n 256 -P "$readers" sh -c "$each" "$scratch"
    case $? in 0 | 123) ;; *) return 1 ;; esac
    : > "$scratch/plain"
  fi
  cat "$scratch/odd" "$scratch/plain" | sum_files "$readers" || return
  ! grep -m 1 -e "rite error" -e "No space left" "$scratch/errors" >&2 || return
  find "$scratch" -maxdepth 1 -name "xxh128.*" -exec cat "{}" + |
    sed -n 's,^\([0-9a-f]*\)  \./\(.*\)$,\2//=xxh128:\1,p' | tr "\n" "\0"
  print_sums
  print_errors < "$scratch/errors"
}
work_alone "$@"

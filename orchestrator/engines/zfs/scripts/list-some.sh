#!/bin/sh
# shellcheck shell=dash disable=SC2154
# Prints the records that list-tree.sh prints, of the root and of the files whose names come on stdin, each ended by NUL.
# Arguments: the dataset or snapshot, the algorithm (sha256), how many readers at once.
# By another descriptor, as what a shell runs in the background has no input.
exec 3<&0
work() {
  readers=$3
  cat <&3 > "$scratch/names"
  mount_here "$1" || return
  find . -maxdepth 0 -printf "//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t\0"
  # Regular files alone are opened: here a name may be another thing than where it was chosen, and a pipe would never end.
  # shellcheck disable=SC2185
  find -files0-from "$scratch/names" -maxdepth 0 -printf "%p//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%l\0" \
    -type f -fprint0 "$scratch/files" 2>> "$scratch/errors" | sed -z "s,^\./,,"
  sum_files "$readers" -a "$scratch/files" -n 64 || return
  print_sums
  grep -v "No such file" "$scratch/errors" | print_errors
}
work_alone "$@"

#!/bin/sh
# shellcheck shell=dash
# For other scripts. holds_by_dataset prints the holds of the snapshots whose names come on stdin, as `zfs holds -H` does, with
# times as numbers where that zfs can.
# Why one question a dataset: who may hold her snapshots may write several lines into a tag, which then look like holds of other
# datasets, or like parts of what a script prints. Lines that do not name a snapshot of that dataset are left out.
# A snapshot that is gone meanwhile has no holds; any other failure is one.
holds_by_dataset() {
  dataset=
  set --
  while IFS= read -r snapshot; do
    if [ "${snapshot%@*}" != "$dataset" ] || [ $# -ge 500 ]; then
      own_holds "$@" || return
      dataset=${snapshot%@*}
      set --
    fi
    set -- "$@" "$snapshot"
  done
  own_holds "$@"
}
own_holds() {
  [ $# -gt 0 ] || return 0
  holds=$(holds_of "$@" 2>/dev/null) || holds=$(for held in "$@"; do holds_of "$held" || exit; done) || return
  printf "%s\n" "$holds" | while IFS= read -r line; do
    case $line in "$dataset@"*) printf "%s\n" "$line" ;; esac
  done
}
holds_of() {
  # OpenZFS 2.1 tells no plain time of a hold, but one of its own clock: so that is UTC.
  said=$(TZ=UTC zfs holds -Hp "$@" 2>/dev/null) || said=$(TZ=UTC zfs holds -H "$@" 2>&1) || {
    case $#:$said in "1:cannot "*"': dataset does not exist") return 0 ;; esac
    printf "%s\n" "$said" >&2
    return 1
  }
  printf "%s\n" "$said"
}

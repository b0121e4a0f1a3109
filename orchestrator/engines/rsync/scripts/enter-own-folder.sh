#!/bin/sh
# shellcheck shell=dash
# For other scripts. enter_room NAME goes into a folder of ours that lies here, and ends the script where it is a link or
# another's. What follows names things from there: whoever may rename the folder from now on changes nothing any more.
enter_room() {
  if [ -L "./$1" ]; then
    echo "$1 is a link, and should be a folder that poolferry made" >&2
    exit 1
  fi
  if ! step "$1"; then
    echo "$1 was exchanged for a link just now, and should be a folder that poolferry made" >&2
    exit 1
  fi
  be_ours "$1"
}
# be_ours NAME ends the script when the folder that it is in belongs to another user.
be_ours() {
  # shellcheck disable=SC3067
  if [ ! -O . ]; then
    # An NFS server may give to nobody all that root makes: then what we make there now has the same owner.
    probe=$(mktemp ./probe.XXXXXX)
    if [ "$(stat -c %u -- "$probe")" != "$(stat -c %u .)" ]; then
      rm -f -- "$probe"
      echo "$1 belongs to another user, and should be a folder that poolferry made" >&2
      exit 1
    fi
    rm -f -- "$probe"
  fi
}

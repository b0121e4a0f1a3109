#!/bin/sh
# shellcheck shell=dash
# For other scripts. enter_room FOLDER goes into a folder of ours, and ends the script where it is a link or another's.
# What follows names things from there: whoever may rename the folder from now on changes nothing any more.
enter_room() {
  if [ -L "$1" ]; then
    echo "$1 is a link, and should be a folder that poolferry made" >&2
    exit 1
  fi
  cd -P -- "$1" || exit
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

#!/bin/sh
# shellcheck shell=dash
# For other scripts. is_own_process FOLDER tells whether a process, as its folder below /proc, is root's or our user's. Any other
# user may give a process of hers any words. Her number stands in its status, as files below /proc are root's where a process
# hides itself. A process may end meanwhile: then it is nobody's.
own_user=$(id -u)
is_own_process() {
  while read -r key real _; do
    if [ "$key" = Uid: ]; then
      [ "$real" = 0 ] || [ "$real" = "$own_user" ]
      return
    fi
  done 2>/dev/null < "$1/status"
  return 1
}

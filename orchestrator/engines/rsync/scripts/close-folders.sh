#!/bin/sh
# shellcheck shell=dash
# Makes folders of ours enterable by their owner alone, as an older version did not. A work tree that others could enter
# meanwhile is not gone on with. Arguments: the target's root, "work" to remove that or nothing, the folders; "." is the root
# itself, which stays open to readers and becomes ours, so that nobody exchanges what lies in it.
set -e
root=$1 work=$2
shift 2
for room in "$@"; do
  enter_place "$root"
  if [ "$room" = . ]; then
    # A filesystem that keeps neither is left as it is.
    chown 0 . 2> /dev/null || true
    chmod go-w . 2> /dev/null || true
    continue
  fi
  enter_room "$room"
  chmod 0700 .
  case $(stat -c %a .) in
    *00) ;;
    *)
      # This filesystem keeps no modes, so nothing can be closed: noted, as it would be tried at each run.
      enter_place "$root"
      enter_room .poolferry
      : > cannot-be-closed
      exit 0 ;;
  esac
  [ "$room" != .poolferry ] || [ "$work" != work ] || rm -rf --one-file-system -- ./work
done

#!/bin/sh
# shellcheck shell=dash
# Sends a stream through a buffer of this end. Arguments: the buffer's memory, seconds of patience, the words of zfs.
# Ends with the sender's own status, unless its reader is to blame.
# Why patience: a machine that lost its power tells nobody, and sshd would wait for two hours for it.
memory=$1 patience=$2
shift 2
exec 3>&1
sender=$(
  {
    { zfs "$@" 3>&- 4>&-; echo $? >&4; } |
      mbuffer -q -s 128k -m "$memory" -W "$patience" >&3 3>&- 4>&-
  } 4>&1
)
buffer=$?
case $sender in
  0 | 141) exit "$buffer" ;;
  *) exit "$sender" ;;
esac

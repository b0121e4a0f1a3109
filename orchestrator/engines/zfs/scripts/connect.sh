#!/bin/sh
# shellcheck shell=dash
# The sending end of a connection of its own, for any stream: nothing is sent before the receiving end has proved itself (meet.pl).
# Our stdout leads through ssh to the receiving end: first what both must know, at last the word that tells that all was sent; its
# end without that word tells that nobody will.
# The text in front gives `meet`. Whether all was sent well is the status of what makes the stream, unless its reader is to blame.
# Arguments: the receiver's address, its port, mbuffer's memory, seconds of patience, rate or nothing, then what makes the stream.
address=$1 port=$2 memory=$3 patience=$4 rate=$5
shift 5
exec 3>&1
transmit() {
  meet connect "$address" "$port" mbuffer -q -s 128k -m "$memory" ${rate:+-r "$rate"} -W "$patience" && echo sent >&3
}
made=$({ { "$@" 3>&- 4>&-; echo $? >&4; } | transmit 4>&-; } 4>&1)
sent=$?
case $made in
  0 | 141) exit "$sent" ;;
  *) exit "${made:-1}" ;; # nothing: its shell was killed
esac

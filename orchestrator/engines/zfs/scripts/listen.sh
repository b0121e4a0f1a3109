#!/bin/sh
# shellcheck shell=dash
# The receiving end of a connection of its own, for any stream: it talks to nobody but the sender that its stdin names (meet.pl).
# The text in front gives `meet`.
# Arguments: the sender's address, ours, our port, seconds of patience, then what takes the stream: a program, or `buffered`
# (buffered.sh) with mbuffer's memory and the words of zfs.
sender=$1 address=$2 port=$3 patience=$4
shift 4
exec 3<&0
meet listen "$sender" "$address" "$port" "$patience" mbuffer -q -s 128k -m 2M -W "$patience" <&3 3<&- | {
  # `meet` becomes mbuffer and keeps its number.
  IFS= read -r connection || exit 1
  # Begun before anybody has come, so that it ends the waiting too.
  { while IFS= read -r line; do [ "$line" != sent ] || exit 0; done; kill "$connection"; } <&3 >/dev/null 2>&1 &
  watchdog=$!
  exec 3<&-
  IFS= read -r _ || { kill "$watchdog" 2>/dev/null; exit 1; }
  "$@"
  status=$?
  if [ "$status" -ne 0 ] || ! wait "$watchdog"; then kill "$watchdog" 2>/dev/null; fi
  exit "$status"
}

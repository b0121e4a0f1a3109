#!/bin/sh
# shellcheck shell=dash
# The receiving end of mbuffer's own connection; connect.sh is the other. It reads the key from its stdin.
# Arguments: address:port, i.e. who may connect and where; seconds of patience; then the command that takes the stream.
address=$1 patience=$2
shift 2
IFS= read -r key || exit 1
[ -n "$key" ] || exit 1
exec 3<&0
# The first word is mbuffer's own number, so that it can be ended.
# shellcheck disable=SC2016
numbered='echo $$; exec "$@"'
sh -c "$numbered" sh \
  mbuffer -q -4 -s 128k -m 2M --tcptimeo "${patience}s" -W "$patience" -I "$address" < /dev/null 3<&- | {
  IFS= read -r mbuffer
  # The watchdog begins before anything comes through the port, so that it ends that waiting too.
  {
    while IFS= read -r line; do
      [ "$line" != sent ] || exit 0
    done
    kill "$mbuffer"
  } <&3 > /dev/null 2>&1 &
  watchdog=$!
  exec 3<&-
  given=$(dd bs=1 count=32 2>/dev/null)
  if [ "$given" != "$key" ]; then
    kill "$mbuffer" "$watchdog" 2>/dev/null
    if [ -n "$given" ]; then
      echo "a stranger connected in place of the sender" >&2
    else
      echo "no sender has connected" >&2
    fi
    exit 1
  fi
  "$@"
  status=$?
  if [ "$status" -eq 0 ]; then
    wait "$watchdog"
  else
    kill "$watchdog" 2>/dev/null
  fi
  exit "$status"
}

#!/bin/sh
# shellcheck shell=dash
# The sending end of mbuffer's own connection, for any stream.
# Arguments: address:port, the buffer's memory, seconds of patience, a rate or nothing, then the command that makes the stream.
# It makes up a key, prints it on its stdout, which reaches the listening end through ssh, and sends it ahead of the stream:
# so nobody else can feed the receiver, who refuses all that does not begin with it. "sent" after the key on that way tells
# that all was sent; its end without that word, that nothing will come.
address=$1 memory=$2 patience=$3 rate=$4
shift 4
key=$(od -An -N16 -tx1 /dev/urandom | tr -d " \n")
printf "%s\n" "$key"
exec 3>&1
# An attempt that cannot connect has taken nothing from its input: the other end does not listen yet. mbuffer of Debian 13
# does not tell a refused connection from others, so there is a limit of time.
reach() {
  begun=$(date +%s)
  while :; do
    said=$(
      mbuffer -q -4 -s 128k -m "$memory" ${rate:+-r "$rate"} --tcptimeo "${patience}s" -W "$patience" -O "$address" \
        2>&1 3>&- 4>&-
    ) && {
      echo sent >&3
      return 0
    }
    case $said in *"unable to connect"*) ;; *) break ;; esac
    [ $(($(date +%s) - begun)) -lt 30 ] || break
    echo >&3
    sleep 0.2
  done
  printf "%s\n" "$said" >&2
  return 1
}
sender=$(
  {
    { printf "%s" "$key"; "$@" 3>&- 4>&-; echo $? >&4; } | reach
  } 4>&1
)
reached=$?
case $sender in
  0 | 141) exit "$reached" ;;
  *) exit "$sender" ;;
esac

#!/bin/sh
# shellcheck shell=dash
# Prints for each process that receives a stream a line "=process PID", then its arguments, one a line.
# Argument: only into datasets below this one, or none.
# A process may end meanwhile: then its arguments are missing, and that is fine.
below=$1
# No name below /proc has a blank.
# shellcheck disable=SC2013
for file in $(grep -lszxE "receive|recv" /proc/[0-9]*/cmdline); do
  if [ -n "$below" ]; then
    case $(tr "\0" "\n" 2>/dev/null < "$file" | tail -n 1) in
      "$below"/*) ;;
      *) continue ;;
    esac
  fi
  process=${file%/cmdline}
  printf "=process %s\n" "${process##*/}"
  tr "\0" "\n" < "$file" 2>/dev/null
done
exit 0

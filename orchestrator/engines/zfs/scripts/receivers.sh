#!/bin/sh
# shellcheck shell=dash
# Prints for each process that receives a stream a line "=process PID", then its arguments, one a line.
# Argument: only into datasets below this one, or none.
# A process may end meanwhile: then its arguments are missing, and that is fine.
# Newlines in an argument are printed as blanks, as no dataset has one.
below=$1
# No name below /proc has a blank.
# shellcheck disable=SC2013
for file in $(grep -lszxE "receive|recv" /proc/[0-9]*/cmdline); do
  process=${file%/cmdline}
  is_own_process "$process" || continue
  words=$(tr "\n\0" " \n" 2>/dev/null < "$file")
  if [ -n "$below" ]; then
    case $(printf "%s\n" "$words" | tail -n 1) in
      "$below"/*) ;;
      *) continue ;;
    esac
  fi
  printf "=process %s\n%s\n" "${process##*/}" "$words"
done
exit 0

#!/bin/sh
# shellcheck shell=dash
# Prints for each process that receives a stream a line "=process PID", then its arguments, one a line.
# Argument: only into datasets below this one, or none.
# A process may end meanwhile: then its arguments are missing, and that is fine.
# Whose: root's and our user's. Any other user may give a process of hers any words. Her number stands in the status, as files
# below /proc are root's where a process hides itself. Newlines in an argument are printed as blanks, as no dataset has one.
below=$1
user=$(id -u)
is_ours() {
  while read -r key real _; do
    if [ "$key" = Uid: ]; then
      [ "$real" = 0 ] || [ "$real" = "$user" ]
      return
    fi
  done 2>/dev/null < "$1/status"
  return 1
}
# No name below /proc has a blank.
# shellcheck disable=SC2013
for file in $(grep -lszxE "receive|recv" /proc/[0-9]*/cmdline); do
  process=${file%/cmdline}
  is_ours "$process" || continue
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

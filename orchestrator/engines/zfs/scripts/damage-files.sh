#!/bin/sh
# shellcheck shell=dash disable=SC2154
# Damages the files whose names come on stdin, each ended by NUL: one bit of the first is turned, the second is removed, the
# others are cut short. Size and time stay as they were where that can be. Argument: the clone.
# By another descriptor, as what a shell runs in the background has no input.
exec 3<&0
work() {
  cat <&3 > "$scratch/names"
  mount_here "$1" rw || return
  tr "\0" "\n" < "$scratch/names" > "$scratch/lines"
  number=0
  while IFS= read -r file; do
    number=$((number + 1))
    touch -r "$file" "$scratch/time"
    case $number in
      1)
        byte=$(head -c 1 "$file" | od -An -tu1)
        turned=$(printf %o $((byte ^ 1)))
        # shellcheck disable=SC2059
        printf "\\$turned" | dd of="$file" conv=notrunc status=none ;;
      2)
        rm "$file"
        continue ;;
      *) truncate -s -1 "$file" ;;
    esac
    touch -r "$scratch/time" "$file"
  done < "$scratch/lines"
  cd /
  sync -f "$scratch/mount"
}
work_alone "$@"

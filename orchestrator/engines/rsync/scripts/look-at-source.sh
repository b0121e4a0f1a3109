#!/bin/sh
# shellcheck shell=dash
# Prints what each folder of a source is: a(bsent), f(ile), or d(irectory) with device, owner and mode of itself and of the
# folder above; then x when it is not empty, which a "quick" look does not find out. Of several ("parts"), l with the real path
# of one that a link leads to. Arguments: a folder, how to look, further folders.
first=$1 how=$2
shift 2
for source in "$first" "$@"; do
  if [ ! -e "$source" ]; then printf "a\0"; continue; fi
  if [ ! -d "$source" ]; then printf "f\0"; continue; fi
  enter_place "$source"
  if [ "$how" = parts ] && [ "$PWD" != "$source" ]; then printf "l %s\0" "$PWD"; continue; fi
  printf "d %s\0" "$(stat -c "%d %u %a" -- . ..)"
  if [ "$how" = quick ]; then printf "x"; else find . -mindepth 1 -maxdepth 1 -printf "x" -quit; fi
  printf "\0"
done

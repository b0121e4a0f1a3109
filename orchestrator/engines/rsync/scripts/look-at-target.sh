#!/bin/sh
# shellcheck shell=dash
# Prints what a target holds, NUL-separated. Argument: its root.
# One find tells nearly all, as each program that a look starts costs a millisecond or two.
root=$1
# The user that this runs as, and whether the path leads through links.
who() {
  user=
  while read -r word first _; do
    [ "$word" != Uid: ] || { user=$first && break; }
  done < /proc/self/status 2>/dev/null
  if [ "$PWD" = "$1" ]; then printf "i plain %s\0" "$user"; else printf "i linked %s\0" "$user"; fi
}
# The folders above this one, one a word.
above() {
  up=.. folders=.. rest=${PWD#/}
  while [ "${rest#*/}" != "$rest" ]; do
    up=../$up rest=${rest#*/}
    folders="$folders $up"
  done
}
if [ ! -d "$root" ]; then
  if [ -e "$root" ]; then printf "n\0"; exit 0; fi
  if [ -d "${root%/*}/" ]; then
    printf "ap\0"
    enter_place "${root%/*}/"
    who "${root%/*}"
    above
    # shellcheck disable=SC2086 # one word each
    find . $folders -maxdepth 0 -printf "b %m %U\0"
    stat -f -c "%a %S %c %d %b" . 2>/dev/null
  else
    printf "a\0"
  fi
  exit 0
fi
enter_place "$root"
printf "d\0"
stat -f -c "%a %S %c %d %b" .
printf "\0"
# A link is not followed: what lies behind it is not ours.
ours=
if [ -d .poolferry ] && [ ! -L .poolferry ]; then ours=.poolferry; fi
marker=
if [ -n "$ours" ] && [ -f .poolferry/target.json ] && [ ! -L .poolferry/target.json ]; then
  # A disk may have been elsewhere: of a file without an end only the beginning is read.
  marker=$(head -c 4096 .poolferry/target.json)
  marker=${marker%%"
"*}
fi
printf "%s\0" "$marker"
who "$root"
above
# shellcheck disable=SC2086 # one word each
set -- $folders .
if [ -d points ] && [ ! -L points ]; then set -- "$@" points; fi
[ -z "$ours" ] || set -- "$@" .poolferry
set -- "$@" -maxdepth 1 \( -path .. -printf "u d %D\0b %m %U\0" -prune
set -- "$@" -o -path "*/.." -printf "b %m %U\0" -prune -o -path . -printf "h d %D\0g %m %U\0"
set -- "$@" -o -path points -printf "k %m points\0" -o -path .poolferry -printf "k %m .poolferry\0v d %U\0"
set -- "$@" -o -path ./latest -type l -printf "r l latest\0l l %l\0"
set -- "$@" -o -path "./*" -printf "r %y %P\0" -o -path "points/*" -printf "p %y %P\0"
# What vanishes while we look is not there. Anything else that find cannot read is a failure.
exec 3>&1
if ! failures=$(LC_ALL=C find "$@" -o -printf "o %y %P\0" \) 2>&1 >&3); then
  if printf "%s\n" "$failures" | grep -v "^find: '[^/]*/.*': No such file or directory$" >&2; then exit 1; fi
fi
[ -z "$ours" ] || [ ! -d .poolferry/trash ] || find .poolferry/trash -mindepth 1 -maxdepth 1 -printf "o %y trash/%P\0"
[ -z "$ours" ] || [ ! -f .poolferry/manifest.gz ] || find .poolferry/manifest.gz -printf "m f %T@\0"

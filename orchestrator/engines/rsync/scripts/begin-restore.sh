#!/bin/sh
# shellcheck shell=dash
# Renames away what lies at a destination, makes the folder, closes it to everybody else until it is whole, and marks it.
# Arguments: the destination, the name for what lies there (or nothing), the marker's text, "unfinished" when an earlier
# restore is gone on with (or nothing), then the names in the folder that lead to what is mounted below.
set -e
to=$1 aside=$2 marker=$3 unfinished=$4
shift 4
if [ -n "$aside" ]; then
  mv -T -n -- "$to" "$aside"
  [ ! -e "$to" ]
fi
# shellcheck disable=SC2174 # the folders above are as usual
mkdir -p -m 0700 -- "$to"
# A link of root's may lead to the folder, a user's may not.
if [ -L "$to" ]; then
  case $(stat -c %u -- "$to") in
    0 | "$(id -u)") ;;
    *) echo "$to is a link of another user" >&2; exit 1 ;;
  esac
fi
cd -P -- "$to"
# shellcheck disable=SC3067
if [ -O . ]; then case $(stat -c %a .) in *00) was=closed ;; *) was=open ;; esac; else was=open; fi
# First the owner: who owns it opens it again. A filesystem that keeps neither is left as it is.
[ "$(id -u)" != 0 ] || chown 0:0 . 2> /dev/null || true
chmod 0700 . 2> /dev/null || true
enter_room .
if [ -n "$unfinished" ]; then
  enter_marked .
  # Others could enter it: what they may have laid in the way of a half-copied file goes.
  [ "$was" = closed ] || find . -xdev -name ".~poolferry-partial~" ! \( -type d -user "$(id -u)" \) \
    -prune -execdir rm -rf -- {} ";"
else
  # It was empty when it was looked at; what came in before it was closed is not ours to replace.
  for entry in * .*; do
    if [ -e "./$entry" ] || [ -L "./$entry" ]; then
      for known in . .. "$@"; do [ "$entry" != "$known" ] || continue 2; done
      echo "$entry has come into $to meanwhile, and a restore overwrites nothing" >&2
      exit 1
    fi
  done
fi
mark "$marker"

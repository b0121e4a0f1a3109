#!/bin/sh
# shellcheck shell=dash
# Renames away what lies at a destination, and makes a folder of ours beside it, in which a file is restored: the folder
# itself may be a user's, who could put links in the way.
# Arguments: the folder, the file's name in it, the name for what lies there (or nothing), the marker's text.
set -e
folder=$1 name=$2 aside=$3 text=$4
if [ -n "$aside" ]; then
  mv -T -n -- "$folder/$name" "$aside"
  [ ! -e "$folder/$name" ]
fi
mkdir -p -- "$folder"
cd -P -- "$folder"
umask 077
for room in ".~poolferry-partial~" "$name"; do
  above=$(stat -c %d:%i .)
  if [ -L "./$room" ] || [ ! -d "./$room" ]; then
    rm -f -- "./$room"
    mkdir -- "./$room"
  fi
  enter_room "./$room"
  # It may have been exchanged for a link just now.
  if [ "$(stat -c %d:%i ..)" != "$above" ]; then
    echo "$room in $folder is not the folder that poolferry made" >&2
    exit 1
  fi
done
mark "$text"

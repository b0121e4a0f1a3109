#!/bin/sh
# shellcheck shell=dash
# Renames away what lies at a destination, and makes a folder of ours beside it, in which a file is restored: the folder
# itself may be a user's, who could put links in the way.
# Arguments: the folder, the file's name in it, the name for what lies there (or nothing), the marker's text.
set -e
folder=$1 name=$2 aside=${3##*/} text=$4
enter_place "$folder" make
if [ -n "$aside" ]; then
  mv -T -n -- "./$name" "./$aside"
  [ ! -e "./$name" ]
fi
umask 077
for room in ".~poolferry-partial~" "$name"; do
  if [ -L "./$room" ] || [ ! -d "./$room" ]; then
    rm -f -- "./$room"
    mkdir -- "./$room"
  fi
  enter_room "$room"
done
# A link that a cut restore brought back: rsync refuses to follow it.
if [ -L "./$name" ]; then
  rm -f -- "./$name"
fi
mark "$text"

#!/bin/sh
# shellcheck shell=dash
# Gives a completed half-copied file its name; one that has not its size yet is left alone.
# Arguments: the work tree, the file's folder in it, its name, its size, and "holes" to make holes of its zeros again, or nothing:
# rsync makes none in a file to which it appends.
set -e
work=$1 folder=$2 name=$3 size=$4 holes=$5
enter_place "$work"
enter_folder "$folder"
[ ! -L ./.~poolferry-partial~ ]
lone_file ".~poolferry-partial~/$name"
[ "$(stat -c %s -- "./.~poolferry-partial~/$name")" = "$size" ] || exit 0
if [ -n "$holes" ]; then
  time=$(stat -c %.9Y -- "./.~poolferry-partial~/$name")
  # Not every filesystem has holes.
  fallocate --dig-holes "./.~poolferry-partial~/$name" 2>/dev/null || true
  touch -m -d "@$time" -- "./.~poolferry-partial~/$name"
fi
mv -T -- "./.~poolferry-partial~/$name" "./$name"
rmdir --ignore-fail-on-non-empty ./.~poolferry-partial~

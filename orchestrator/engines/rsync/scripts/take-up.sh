#!/bin/sh
# shellcheck shell=dash
# Lays a half-copied file where a resumed copy looks for it, and cuts it to a length.
# Arguments: the work tree, the file's folder in it, its name, the orphaned temporary's name (nothing: it lies in the
# partial folder already), the length (nothing: it stays as it is), "own" where the file must be this user's.
set -e
work=$1 folder=$2 name=$3 orphan=$4 length=$5 own=${6-}
enter_place "$work"
enter_folder "$folder"
if [ -n "$orphan" ]; then
  lone_file "$orphan"
  # Whoever made it may have it open still.
  # shellcheck disable=SC3067
  [ -z "$own" ] || [ -O "./$orphan" ]
  # A source that does not keep to our rules may have sent something of that name: it is no folder of rsync's.
  if [ -L ./.~poolferry-partial~ ] || [ ! -d ./.~poolferry-partial~ ]; then
    rm -f -- ./.~poolferry-partial~
    (umask 077; mkdir ./.~poolferry-partial~)
  fi
  mv -T -- "./$orphan" "./.~poolferry-partial~/$name"
fi
enter_folder .~poolferry-partial~
lone_file "$name"
[ -z "$length" ] || truncate -s "$length" -- "./$name"

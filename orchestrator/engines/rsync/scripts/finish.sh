#!/bin/sh
# shellcheck shell=dash
# Gives a completed half-copied file its name; one that has not its size yet is left alone.
# Arguments: the work tree, the file's folder in it, its name, its size.
set -e
work=$1 folder=$2 name=$3 size=$4
cd -P -- "$work"
enter_folder "$folder"
[ ! -L ./.~poolferry-partial~ ]
lone_file ".~poolferry-partial~/$name"
[ "$(stat -c %s -- "./.~poolferry-partial~/$name")" = "$size" ] || exit 0
mv -T -- "./.~poolferry-partial~/$name" "./$name"
rmdir --ignore-fail-on-non-empty ./.~poolferry-partial~

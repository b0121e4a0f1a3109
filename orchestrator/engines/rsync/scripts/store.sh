#!/bin/sh
# shellcheck shell=dash
# Writes its input to a file in a folder of ours, whole or not at all, for our eyes alone. Arguments: the file, the bytes of the input.
# Why bytes: a cut link ends the input as its true end does. Nothing (an earlier version asks): whatever comes is whole.
set -e
file=$1 size=${2-}
name=${file##*/}
umask 077
enter_place "${file%/*}"
be_ours "${file%/*}"
# What lay there under that name may be a link or a FIFO: never written through.
if [ -e "./$name.new" ] || [ -L "./$name.new" ]; then rm -f -- "./$name.new"; fi
set -C
cat > "./$name.new"
if [ -n "$size" ] && [ "$(stat -c %s -- "./$name.new")" != "$size" ]; then
  rm -f -- "./$name.new"
  echo "what came of $name is not whole: the connection was cut, or the file was changed meanwhile" >&2
  exit 1
fi
sync -- "./$name.new"
mv -T -- "./$name.new" "./$name"
# Its own time, as the filesystem has it: no other clock tells what a later look finds there.
stat -c %Y -- "./$name"

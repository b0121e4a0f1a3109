#!/bin/sh
# shellcheck shell=dash
# Gives a restored file its place, two folders above; nothing is replaced there. Arguments: our folder, the file's name.
# Why by "..": nobody else can move our folders into another one, and a path could be led elsewhere.
set -e
room=$1 name=$2
enter_marked "$room"
mv -T -n -- "./$name" "../../$name"
if [ -e "./$name" ] || [ -L "./$name" ]; then
  echo "$name has come to be there meanwhile, and a restore overwrites nothing" >&2
  exit 1
fi
cd -P ..
rm -rf -- "./$name"
cd -P ..
rmdir --ignore-fail-on-non-empty ./.~poolferry-partial~

#!/bin/sh
# shellcheck shell=dash
# Renames away what lies at a destination, makes the folder, and marks it as being restored.
# Arguments: the destination, the name for what lies there (or nothing), the folder to make, the marker's text (or nothing).
set -e
to=$1 aside=$2 folder=$3 marker=$4
if [ -n "$aside" ]; then
  mv -T -n -- "$to" "$aside"
  [ ! -e "$to" ]
fi
mkdir -p -- "$folder"
[ -n "$marker" ] || exit 0
cd -P -- "$to"
# The folder may be a user's, who laid a link there: the marker is a new file, or this fails.
rm -f -- .poolferry-restoring.json.new
printf "%s\n" "$marker" | dd of=.poolferry-restoring.json.new oflag=nofollow conv=excl status=none
mv -T -- .poolferry-restoring.json.new .poolferry-restoring.json

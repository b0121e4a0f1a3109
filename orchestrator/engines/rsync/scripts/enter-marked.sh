#!/bin/sh
# shellcheck shell=dash
# For other scripts. enter_marked FOLDER goes into a folder of ours that a restore has marked, and ends the script
# elsewhere: whoever owns a folder above may rename it, and put something else there.
enter_marked() {
  enter_place "$1"
  be_marked "$1"
}
# be_marked FOLDER ends the script when the folder that it is in is not marked.
be_marked() {
  be_ours "$1"
  marker=./.poolferry-restoring.json
  owners=$(stat -c %u:%u "$marker" . 2> /dev/null) || owners=
  if [ -z "$owners" ] || [ ! -f "$marker" ] || [ -L "$marker" ] || [ "${owners%%:*}" != "${owners##*:}" ]; then
    echo "$1 is not the folder that this restore has marked" >&2
    exit 1
  fi
}
# mark TEXT marks the folder that the script is in. The marker is a new file, or this fails.
mark() {
  if [ -e .poolferry-restoring.json.new ] || [ -L .poolferry-restoring.json.new ]; then
    rm -f -- .poolferry-restoring.json.new
  fi
  printf "%s\n" "$1" | dd of=.poolferry-restoring.json.new oflag=nofollow conv=excl status=none
  mv -T -- .poolferry-restoring.json.new .poolferry-restoring.json
}

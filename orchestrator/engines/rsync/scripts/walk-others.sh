#!/bin/sh
# shellcheck shell=dash
# For other scripts. others PREFIX FOLDER… calls `act` with each entry here that is none of the folders, nor above one.
others() {
  for entry in "$1"* "$1".[!.]* "$1"..?*; do
    [ -e "./$entry" ] || [ -L "./$entry" ] || continue
    kind=other first=yes
    for folder in "$@"; do
      if [ -n "$first" ]; then first= && continue; fi
      case $folder/ in
        "$entry"/) kind=one && break ;;
        "$entry"/*) kind=above ;;
      esac
    done
    case $kind in
      other) act "$entry" ;;
      above)
        if [ -d "./$entry" ] && [ ! -L "./$entry" ]; then
          (above=$entry && shift && others "$above/" "$@")
        fi ;;
    esac
  done
}

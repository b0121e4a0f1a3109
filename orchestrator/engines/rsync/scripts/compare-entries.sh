#!/bin/sh
# shellcheck shell=dash
# Compares two entries: files by their bytes, links by their text, all others by their kind alone, as to read them may never end.
# Arguments: the paths of both.
set -e
if [ -f "$1" ] && [ ! -L "$1" ] && [ -f "$2" ] && [ ! -L "$2" ]; then
  exec cmp -- "$1" "$2"
fi
text_of() { if [ -L "$1" ]; then readlink -- "$1"; fi; }
if [ "$(stat -c "%F %t %T" -- "$1") $(text_of "$1")." != "$(stat -c "%F %t %T" -- "$2") $(text_of "$2")." ]; then
  echo "they differ" >&2
  exit 1
fi

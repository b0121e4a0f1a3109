#!/bin/sh
# shellcheck shell=dash
# Prints the first entries of a folder's own filesystem, e before each; then the mounts, f where files are in it, else v.
# What is mounted is an entry, and nothing of what lies in it; folders alone are no files.
# Arguments: the folder, so many entries are enough, the mounts.
cd -- "$1" || exit
most=$2
shift 2
find . -xdev -mindepth 1 -printf "e%P\0" | head -z -n "$most"
for mount in "$@"; do
  if [ -e "./$mount" ]; then
    if [ -n "$(find "./$mount" ! -type d -print -quit)" ]; then printf "f%s\0" "$mount"; else printf "v%s\0" "$mount"; fi
  fi
done

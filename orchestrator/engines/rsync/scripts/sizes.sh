#!/bin/sh
# shellcheck shell=dash
# Prints the size of each file of a tree, - where there is no such regular file. Arguments: the tree, the files.
cd -- "$1" || exit
shift
for file in "$@"; do
  if [ -f "$file" ] && [ ! -L "$file" ]; then stat -c "%s" -- "$file" || echo -; else echo -; fi
done

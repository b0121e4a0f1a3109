#!/bin/sh
# shellcheck shell=dash
# Prints the size of each file of a tree, - where there is no such regular file, or a link leads to it.
# Arguments: the tree, the files, each with ./ before it.
enter_place "$1"
shift
for file in "$@"; do
  (
    path=${file#./} name=${file##*/}
    case $path in */*) enter_folder "${path%/*}" 2> /dev/null ;; esac
    [ -f "./$name" ] && [ ! -L "./$name" ] && stat -c "%s" -- "./$name"
  ) || echo -
done

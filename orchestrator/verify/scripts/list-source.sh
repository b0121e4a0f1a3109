#!/bin/sh
# shellcheck shell=dash
# Prints the time, then a tree as find lists it, then after an empty record what getfattr prints of it, all NUL-terminated.
# Arguments: the tree, "one-filesystem" or nothing, "attributes" or nothing, find's format, and where only some folders of the
# tree are meant, those, each with ./ before it.
# What vanishes or cannot be read is not listed: the copy itself has told of it.
tree=$1 alone=$2 attributes=$3 format=$4
shift 4
[ $# -gt 0 ] || set -- .
cd -- "$tree" || exit
date "+%s.%N"
printf "\0"
LC_ALL=C find "$@" ${alone:+-xdev} -printf "$format" 2>/dev/null || [ $? = 1 ] || exit
printf "\0"
[ -n "$attributes" ] || exit 0
if ! command -v getfattr >/dev/null; then printf "absent\0"; exit 0; fi
{ find "$@" ${alone:+-xdev} -print0 2>/dev/null || or_end 1; } |
  { xargs -0 -r getfattr -h -d -m - -e hex -- 2>/dev/null || or_end 123; } | tr "\n" "\0"

#!/bin/sh
# shellcheck shell=dash
# Prints the files of a mirror that changed since its unfinished run began, NUL-terminated, up to so many. Arguments: the mirror's
# root, the number.
enter_place "$1"
since=$(stat -c %Y .poolferry/work) || exit
find . -xdev -path ./.poolferry -prune -o -type f -newerct "@$since" -printf "%P\0" | head -z -n "$2"

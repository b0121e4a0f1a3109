#!/bin/sh
# shellcheck shell=dash
# Prints size and path of what interrupted copying left in the work tree: files in partial folders, and rsync's orphaned
# temporaries. A file with a second name is none of them: it is shared with an older point. Argument: the work tree.
work=$1
LC_ALL=C find "$work/" -type f -links 1 -size +0 -regextype posix-extended \
  -regex ".*/(\.~poolferry-partial~/[^/]+|\.[^/]+\.[A-Za-z0-9]{6})" -printf "%s %P\0"

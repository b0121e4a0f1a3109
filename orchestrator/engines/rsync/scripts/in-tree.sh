#!/bin/sh
# shellcheck shell=dash
# Runs a program in a target's tree, which has no path that another user could exchange from then on.
# Arguments: the target's root, "work" for the work tree or nothing for the root itself, the program and its words.
set -e
root=$1 tree=$2
shift 2
enter_place "$root"
enter_room .poolferry
if [ -n "$tree" ]; then
  enter_folder "$tree"
else
  cd -P ..
fi
exec "$@"

#!/bin/sh
# shellcheck shell=dash
# Prints what a point holds at a path: folder, file or absent. Argument: the path.
wanted=$1
if [ -d "$wanted" ] && [ ! -L "$wanted" ]; then
  echo folder
elif [ -e "$wanted" ] || [ -L "$wanted" ]; then
  echo file
else
  echo absent
fi

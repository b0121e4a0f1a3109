#!/bin/sh
# shellcheck shell=dash
# Prints "there" when a point, its manifest and `latest` are. Arguments: the target's root, the point.
root=$1 name=$2
cd -- "$root" && [ -d "points/$name" ] && [ -f "points/$name.manifest.gz" ] &&
  [ "$(readlink latest)" = "points/$name" ] && echo there

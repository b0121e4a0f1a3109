#!/bin/sh
# shellcheck shell=dash
# Makes `latest` name a point. Arguments: the target's root, the point.
set -e
root=$1 name=$2
enter_place "$root"
enter_room .poolferry
ln -s -f -n -- "points/$name" latest
mv -T -- latest ../latest

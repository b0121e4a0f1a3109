#!/bin/sh
# shellcheck shell=dash
# Makes `latest` name a point. Arguments: the target's root, the point.
set -e
root=$1 name=$2
cd -P -- "$root"
ln -s -f -n -- "points/$name" .poolferry/latest
mv -T -- .poolferry/latest latest

#!/bin/sh
# shellcheck shell=dash
# Removes from a work tree what is none of several folders, nor above one. Arguments: the tree, the folders.
set -e
enter_place "$1"
shift
act() { rm -rf -- "./$1"; }
others "" "$@"

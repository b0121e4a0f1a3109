#!/bin/sh
# shellcheck shell=dash
# Prints what a copy of several folders holds besides them, NUL-terminated. Arguments: the tree, the folders.
enter_place "$1"
shift
act() { printf "%s\0" "$1"; }
others "" "$@"

#!/bin/sh
# shellcheck shell=dash
# Runs a program in a folder below one that a restore has marked. Arguments: the marked folder, the path below, the program
# and its words.
set -e
enter_marked "$1"
enter_folder "$2"
shift 2
exec "$@"

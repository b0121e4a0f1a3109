#!/bin/sh
# shellcheck shell=dash
# Runs a program in a folder that a restore has marked. Arguments: the folder, the program and its words.
set -e
enter_marked "$1"
shift
exec "$@"

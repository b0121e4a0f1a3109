#!/bin/sh
# shellcheck shell=dash
# Removes a small file of ours that holds no more. Argument: the file.
set -e
file=$1
enter_room "${file%/*}"
rm -f -- "./${file##*/}"

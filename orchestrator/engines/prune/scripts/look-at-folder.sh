#!/bin/sh
# shellcheck shell=dash
# Prints this machine's time, then of each point in a folder, and of the trash of a removal that was cut: inode, time of change, kind
# and path below the folder, each ended by NUL. Argument: the folder.
date +%s | tr "\n" "\0"
exec find "$1" -mindepth 2 -maxdepth 2 \( -path "$1/points/*" -o -path "$1/.poolferry/trash" \) -printf "%i %C@ %y %P\0"

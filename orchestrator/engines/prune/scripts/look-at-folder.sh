#!/bin/sh
# shellcheck shell=dash
# Prints this machine's time, then of each point in a folder, and of the trash of a removal that was cut: inode, time of change, kind
# and path below the folder, each ended by NUL. Argument: the folder.
date +%s | tr "\n" "\0"
# Entered, as a pattern would read brackets in the folder's own path.
cd -- "$1" || exit
exec find . -mindepth 2 -maxdepth 2 \( -path "./points/*" -o -path "./.poolferry/trash" \) -printf "%i %C@ %y %P\0"

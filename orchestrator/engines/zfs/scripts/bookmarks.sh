#!/bin/sh
# shellcheck shell=dash
# Creates bookmarks in one transaction by the channel program bookmarks.lua, which stands before this script as the function
# `channel_program`. It needs root. Arguments: the pool, then dataset, snapshot with its @, and bookmark of each.
pool=$1
shift
channel_program | zfs program -m 67108864 -t 50000000 "$pool" - "$@" > /dev/null

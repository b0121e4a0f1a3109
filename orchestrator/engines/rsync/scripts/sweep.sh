#!/bin/sh
# shellcheck shell=dash
# Removes all partial folders of a tree; the folders that held them keep their times.
# Arguments: the tree, "one-filesystem" to leave alone what is mounted inside, or nothing.
# Why -execdir: it works in the very folder that find is in, so that nobody leads it elsewhere by a link.
set -e
tree=$1 alone=$2
enter_place "$tree"
# shellcheck disable=SC2016
remove='time=$(stat -c %.9Y .); rm -rf -- "$1"; touch -m -d "@$time" .'
find . ${alone:+-xdev} -name ".~poolferry-partial~" -prune -execdir sh -e -c "$remove" sh {} ";" || true

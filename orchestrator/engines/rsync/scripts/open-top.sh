#!/bin/sh
# shellcheck shell=dash
# Opens the top of a work tree for readers: a folder of our own above several folders. Argument: the tree.
set -e
enter_place "$1"
chmod 0755 .

#!/bin/sh
# shellcheck shell=dash
# Prints sha256sum's line for each file that its input names, NUL-terminated. Argument: the tree.
cd -- "$1" && xargs -0 -r -P 4 -n 64 sha256sum --

#!/bin/sh
# shellcheck shell=dash
# Prints version and abilities of the rsync here. Argument: what this program says of itself, as one line of JSON. A gate, which has
# a script of its own by that name, answers with what it can before.
exec rsync --version --version

#!/bin/sh
# shellcheck shell=dash
# Everything to the disk; then what was noted as damaged, and as unfinished, holds no more. Argument: the mirror's root.
set -e
enter_place "$1"
enter_room .poolferry
sync_noted .
rm -f -- mirror.damaged
rm -rf -- partial temporary
rm -rf -- work

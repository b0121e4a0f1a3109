#!/bin/sh
# shellcheck shell=dash
# Prints what the source's root is: a(bsent), f(ile), or d(irectory) with device, owner and mode of itself and of the
# folder above. Then x when it is not empty; only a "whole" look finds that out.
source=$1 how=$2
if [ ! -e "$source" ]; then printf "a\0"; exit 0; fi
if [ ! -d "$source" ]; then printf "f\0"; exit 0; fi
enter_place "$source"
printf "d %s\0" "$(stat -c "%d %u %a" -- . ..)"
if [ "$how" = whole ]; then find . -mindepth 1 -maxdepth 1 -printf "x" -quit; else printf "x"; fi
printf "\0"

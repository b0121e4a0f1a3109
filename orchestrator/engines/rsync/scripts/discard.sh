#!/bin/sh
# shellcheck shell=dash
# Removes half-copied files. Arguments: the work tree, then folder and name of each.
set -e
enter_place "$1"
shift
while [ $# -gt 0 ]; do
  (enter_folder "$1"; rm -f -- "./$2")
  shift 2
done

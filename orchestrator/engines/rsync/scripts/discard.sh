#!/bin/sh
# shellcheck shell=dash
# Removes half-copied files, and what has no owner yet, from a work tree, which nobody else enters. Arguments: the tree, then folder and name of each.
set -e
enter_place "$1"
shift
while [ $# -gt 0 ]; do
  (enter_folder "$1"; rm -rf -- "./$2")
  shift 2
done

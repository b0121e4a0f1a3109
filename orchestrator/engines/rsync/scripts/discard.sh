#!/bin/sh
# shellcheck shell=dash
# Removes half-copied files; from a work tree, which nobody else enters, also folders that have no owner yet. Arguments: the tree, then folder and
# name of each. A mirror holds folders of others: there a folder in the place of a file stays.
set -e
case $1 in */.poolferry/work) folders=yes ;; *) folders= ;; esac
enter_place "$1"
shift
while [ $# -gt 0 ]; do
  (enter_folder "$1"; if [ "$folders" ]; then rm -rf -- "./$2"; else rm -f -- "./$2"; fi)
  shift 2
done

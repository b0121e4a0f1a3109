#!/bin/sh
# shellcheck shell=dash
# Prints each file of a dataset as size, TAB, path, NUL. Argument: the dataset or snapshot.
work() {
  mount_here "$1" || return
  find . -xdev -type f -printf "%s\t%P\0"
}
work_alone "$@"

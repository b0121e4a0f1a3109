#!/bin/sh
# shellcheck shell=dash
# Prints the free space of each dataset, and what its snapshots take, in bytes; the root's first.
# Arguments: the root, -r for all datasets below it or -d0 for it alone.
root=$1 depth=$2
zfs list -Hp -o available,usedbysnapshots -t filesystem,volume "$depth" "$root"

#!/bin/sh
# shellcheck shell=dash
# Prints name, guid and createtxg of all snapshots of datasets. Arguments: the datasets.
zfs list -Hp -d 1 -t snapshot -o name,guid,createtxg "$@"

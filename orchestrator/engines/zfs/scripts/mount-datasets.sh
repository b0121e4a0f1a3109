#!/bin/sh
# shellcheck shell=dash
# Mounts datasets; those that are mounted already are fine. Arguments: the datasets, parents first.
status=0
for dataset in "$@"; do
  said=$(zfs mount "$dataset" 2>&1) || case $said in
    *"already mounted"*) ;;
    *)
      printf "%s\n" "$said" >&2
      status=1 ;;
  esac
done
[ "$status" = 0 ]

#!/bin/sh
# shellcheck shell=dash
# Prints name and time of a dataset's snapshots, oldest first; nothing for one that is not there. Argument: the dataset.
dataset=$1
exec 3>&1
said=$(zfs list -Hp -d 1 -t snapshot -s createtxg -o name,creation "$dataset" 2>&1 >&3) || case $said in
  *"does not exist"*) ;;
  *)
    printf "%s\n" "$said" >&2
    exit 1 ;;
esac

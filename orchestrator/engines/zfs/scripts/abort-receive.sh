#!/bin/sh
# shellcheck shell=dash
# Throws away what an interrupted receive left. Where there is nothing to throw away, that is fine. Argument: the dataset.
dataset=$1
said=$(zfs receive -A "$dataset" 2>&1) || case $said in
  *"does not have any resumable"* | *"dataset does not exist"*) ;;
  *)
    printf "%s\n" "$said" >&2
    exit 1 ;;
esac

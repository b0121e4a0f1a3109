#!/bin/sh
# shellcheck shell=dash
# Prints our user and groups, whether the pool is read-only and receives can be resumed, and what is delegated at the nearest dataset that is there.
# Arguments: the pool, the dataset.
pool=$1 dataset=$2
printf "=user %s\n" "$(id -un)"
printf "=groups %s\n" "$(id -Gn)"
printf "=readonly %s\n" "$(zpool get -Hp -o value readonly "$pool")"
printf "=resumable %s\n" "$(zpool get -Hp -o value feature@extensible_dataset "$pool")"
while :; do
  delegated=$(zfs allow "$dataset" 2>/dev/null) && break
  case $dataset in
    */*) dataset=${dataset%/*} ;;
    *) break ;;
  esac
done
printf "=at %s\n%s\n" "$dataset" "$delegated"

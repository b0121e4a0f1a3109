#!/bin/sh
# shellcheck shell=dash
# Takes a pool's own dataset for what returns. Arguments: the dataset, the property that marks it as a place of ours, and of each
# of its snapshots, which hold no file, the guid and the name.
dataset=$1 property=$2
shift 2
# Unmounted first: what is busy keeps its properties and its snapshots.
[ "$(zfs get -Ho value mounted "$dataset")" = no ] || zfs unmount "$dataset" || exit
for empty do
  [ "$(zfs get -Hpo value guid "$dataset@${empty#* }")" = "${empty%% *}" ] || continue
  zfs destroy "$dataset@${empty#* }" || exit
done
zfs set readonly=on canmount=noauto "$property=on" "$dataset"

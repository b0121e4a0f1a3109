#!/bin/sh
# shellcheck shell=dash
# Takes a pool's own dataset for what returns. Arguments: the dataset, the property that marks it as a place of ours.
dataset=$1 property=$2
# Unmounted first: what is busy keeps its properties.
[ "$(zfs get -Ho value mounted "$dataset")" = no ] || zfs unmount "$dataset" || exit
zfs set readonly=on canmount=noauto "$property=on" "$dataset"

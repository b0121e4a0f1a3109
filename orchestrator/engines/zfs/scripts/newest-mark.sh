#!/bin/sh
# shellcheck shell=dash
# Prints guid and createtxg of the snapshot that came last into a dataset, joined by a dot. Argument: the dataset.
newest=$(zfs get -Hp -o value prevsnap "$1") && said=$(zfs get -Hp -o value guid,createtxg "$newest") || exit
# shellcheck disable=SC2086
printf "%s.%s\n" $said

#!/bin/sh
# shellcheck shell=dash
# Prints the guid of the snapshot that came last into a dataset. Argument: the dataset.
newest=$(zfs get -Hp -o value prevsnap "$1") && zfs get -Hp -o value guid "$newest"

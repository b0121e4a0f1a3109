#!/bin/sh
# shellcheck shell=dash
# Prints an archive of the recovery kits at a dataset and below it, whose pool is imported. Argument: the dataset.
mount -t tmpfs none /mnt || exit
mount_kit_datasets "$1"
pack_mounts

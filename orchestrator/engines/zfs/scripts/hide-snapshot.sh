#!/bin/sh
# shellcheck shell=dash
# Unmounts what show-snapshot.sh mounted. Arguments: the folder, "sudo" or nothing.
folder=$1 sudo=$2
! mountpoint -q "$folder" || $sudo umount "$folder" || $sudo umount -l "$folder"
rmdir "$folder"

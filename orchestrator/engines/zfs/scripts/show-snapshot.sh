#!/bin/sh
# shellcheck shell=dash
# Mounts a snapshot read-only in a folder that nobody else enters. What an earlier restore left mounted there is the same one.
# Arguments: the snapshot, the folder, "sudo" or nothing.
snapshot=$1 folder=$2 sudo=$3
umask 077
mkdir -p "$folder" || exit
mountpoint -q "$folder" || mount_safely ro "$snapshot" "$folder" "$sudo"

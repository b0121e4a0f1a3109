#!/bin/sh
# shellcheck shell=dash
# For other scripts. mount_safely OPTIONS DATASET FOLDER [SUDO] mounts a dataset or a snapshot that others may have made: no
# program in it is run, no device node opened, no link followed. The options begin with ro or rw; SUDO comes before mount.
# Why twice: OpenZFS refuses nosymfollow as an option of its own, but Linux sets it on what is mounted, since 5.10.
mount_safely() {
  as_root=${4-}
  closed=nosuid,nodev,noexec
  $as_root mount -t zfs -o "$1,$closed" "$2" "$3" || return
  $as_root mount -o "remount,bind,${1%%,*},$closed,nosymfollow" "$3" 2>/dev/null || :
}

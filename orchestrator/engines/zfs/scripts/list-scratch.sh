#!/bin/sh
# shellcheck shell=dash
# Prints the scratch copies of a place: name, space, mountpoint, our two properties, name. Nothing where the place is not there.
# Argument: the place.
place=$1
exec 3>&1
said=$(
  zfs list -Hp -d 1 -t filesystem,volume -o name,used,mountpoint,poolferry:try,poolferry:until,name "$place" 2>&1 >&3
) || case $said in
  *"does not exist"*) ;;
  *)
    printf "%s\n" "$said" >&2
    exit 1 ;;
esac

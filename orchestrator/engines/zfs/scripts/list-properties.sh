#!/bin/sh
# shellcheck shell=dash
# Prints all properties below a root, who is mounted where, the mountpoints that hold files now, and the locations of keys that
# hold none. Argument: the root.
# Nothing of a root that is not there. zfs shows each mountpoint below the folder that the pool was imported for, received ones too:
# hence altroot, as a disk's own folder is none of the source's.
root=$1
printf "=properties\n"
exec 3>&1
said=$(properties_by_line -r "$root" 2>&1 >&3) || case $said in
  *"does not exist"* | *"no such pool"*) ;;
  *)
    printf "%s\n" "$said" >&2
    exit 1 ;;
esac
# `all` does not list the salt.
zfs get -Hp -r -t filesystem,volume -o name,property,value,received,source pbkdf2salt "$root" 2>/dev/null
printf "=altroot\n"
zpool get -H -o value altroot "${root%%/*}" 2>/dev/null
printf "=mounts\n"
cut -d " " -f 1,2 /proc/self/mounts
printf "=occupied\n"
is_occupied() {
  [ -d "$1" ] && ! mountpoint -q -- "$1" && [ -n "$(find "$1" -xdev ! -type d -print -quit 2>/dev/null)" ]
}
zfs list -H -o mountpoint -r -t filesystem "$root" 2>/dev/null | sort -u | while IFS= read -r folder; do
  case $folder in
    /*) if is_occupied "$folder"; then printf "%s\n" "$folder"; fi ;;
  esac
done
printf "=keyless\n"
zfs get -Hp -o value -r -t filesystem,volume keylocation "$root" 2>/dev/null | sort -u | while IFS= read -r place; do
  case $place in
    file://*) [ -e "${place#file://}" ] || printf "%s\n" "$place" ;;
  esac
done
printf "=end\n"

#!/bin/sh
# shellcheck shell=dash
# Prints our user, the imported pools, and one pool's bookmarks, held snapshots, the guids of all snapshots, and our holds, in
# parts that begin with a line "=name". Without "=end" it is cut short. Argument: the pool.
pool=$1
printf "=user %s\n=pools\n" "$(id -u)"
zpool list -Hp -o name,guid || exit
printf "=bookmarks\n"
exec 3>&1
said=$(zfs list -Hp -r -t bookmark -o name,creation "$pool" 2>&1 >&3) || case $said in
  *"does not exist"*)
    printf "=absent\n=end\n"
    exit 0 ;;
  *)
    printf "%s\n" "$said" >&2
    exit 1 ;;
esac
printf "=snapshots\n"
snapshots=$(zfs list -Hp -r -t snapshot -o userrefs,used,guid,name "$pool") || exit
held=$(printf "%s\n" "$snapshots" | grep "^[1-9]")
printf "%s\n=guids\n" "$held"
printf "%s\n" "$snapshots" | cut -f 3-
printf "=holds\n"
[ -z "$held" ] || printf "%s\n" "$held" | cut -f 4- | holds_by_dataset || exit
printf "=end\n"

#!/bin/sh
# shellcheck shell=dash
# Prints where the dataset with a guid lies in the pools that are imported now: the guid of its pool, and its name; and the nearest dataset
# that is there above its former name ("=above"). Ends with "=end", or with "=within" and the only dataset below which it looked.
# Arguments: the dataset's guid, 0 for the pool itself; the pool's guid, 0 for any; its former name; the dataset below which it looks, "" for all.
guid=$1 only=$2 former=$3 within=$4
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
tab=$(printf "\t")
is_shown() {
  case $1/ in "$within"/*) ;; *) [ -z "$within" ] ;; esac
}
find_above() {
  above=$1
  while [ "$above" != "${above%/*}" ]; do
    above=${above%/*}
    is_shown "$above" || return
    if zfs list -H -o name "$above" > /dev/null 2>&1; then
      printf "=above\t%s\n" "$above"
      return
    fi
  done
}
pools=$(zpool list -Hp -o guid,health,name) || exit
printf "%s\n" "$pools" | while IFS=$tab read -r pool health name; do
  top=$name
  if [ -n "$within" ]; then
    [ "$name" = "${within%%/*}" ] || continue
    top=$within
  fi
  # zfs would wait for a pool whose disks are gone, perhaps for ever.
  case $health in ONLINE | DEGRADED) sound=yes ;; *) sound=no ;; esac
  [ $sound = no ] || [ "$name" != "${former%%/*}" ] || find_above "$former"
  [ "$only" = 0 ] || [ "$only" = "$pool" ] || continue
  if [ "$guid" = 0 ]; then
    [ -n "$within" ] || printf "%s\t%s\n" "$pool" "$name"
    continue
  fi
  [ $sound = no ] || zfs list -Hp -r -t filesystem,volume -o guid,name "$top" 2> /dev/null | sed -n "s/^$guid$tab/$pool$tab/p"
done
if [ -n "$within" ]; then
  printf "=within\t%s\n" "$within"
else
  echo "=end"
fi

#!/bin/sh
# shellcheck shell=dash
# Prints where the dataset with a guid lies in the pools that are imported now: the guid of its pool, and its name. Ends with "=end".
# Arguments: the dataset's guid, 0 for the pool itself; the pool's guid, 0 for any.
guid=$1 only=$2
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
tab=$(printf "\t")
pools=$(zpool list -Hp -o guid,health,name) || exit
printf "%s\n" "$pools" | while IFS=$tab read -r pool health name; do
  [ "$only" = 0 ] || [ "$only" = "$pool" ] || continue
  if [ "$guid" = 0 ]; then
    printf "%s\t%s\n" "$pool" "$name"
    continue
  fi
  # zfs would wait for a pool whose disks are gone, perhaps for ever.
  case $health in ONLINE | DEGRADED) ;; *) continue ;; esac
  zfs list -Hp -r -t filesystem,volume -o guid,name "$name" | sed -n "s/^$guid$tab/$pool$tab/p"
done
echo "=end"

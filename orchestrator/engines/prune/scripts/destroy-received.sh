#!/bin/sh
# shellcheck shell=dash
# Destroys snapshots one by one, each only if its guid is the one that was decided on. One that is gone is fine; what is in use
# stays. Arguments: of each the whole name and the guid. Ends with 75 when some stayed.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
stayed=0
while [ $# -gt 1 ]; do
  name=$1 guid=$2
  shift 2
  case $name in
    *[@]*[,%]* | *[@]*[@]*) found="no name of one snapshot: $name" ;;
    *[@]?*) found=$(zfs get -Hp -o value guid "$name" 2>&1) ;;
    *) found="no snapshot: $name" ;;
  esac
  case $found in
    "$guid") ;;
    *"does not exist"*) continue ;;
    *)
      printf "%s is not the snapshot with the guid %s: %s\n" "$name" "$guid" "$found" >&2
      exit 1 ;;
  esac
  said=$(zfs destroy "$name" 2>&1) || case $said in
    *"does not exist"* | *"could not find any snapshots to destroy"*) ;;
    *"is busy"* | *"being held"* | *"dependent clones"*)
      printf "%s stays: %s\n" "$name" "$said" >&2
      stayed=75 ;;
    *)
      printf "%s\n" "$said" >&2
      exit 1 ;;
  esac
done
exit "$stayed"

#!/bin/sh
# shellcheck shell=dash
# Makes the target ours, and waits until no receiver of an earlier run is alive.
# Arguments: the target's root, the job, seconds to wait, "fake-super" where copies keep their metadata in attributes, then the folders of
# ours to make.
set -e
root=$1 job=$2 patience=$3 stored=
shift 3
if [ "${1-}" = fake-super ]; then stored=', "fake-super": true' && shift; fi
enter_place "$root" make
umask 077
[ -d .poolferry ] || mkdir .poolferry
enter_room .poolferry
# A marker that holds nothing is none: a power cut may leave it empty, or full of zeros.
if [ ! -e target.json ] || { [ -f target.json ] && [ -z "$(head -c 4096 target.json | head -n 1 | tr -d "\0\t ")" ]; }; then
  if [ -e probe ] || [ -L probe ]; then rm -f probe; fi
  : > probe
  touch -d "@1.123456789" probe
  case $(stat -c "%.9Y" probe) in *.123456789) coarse=false ;; *) coarse=true ;; esac
  rm -f probe target.json.new
  printf '{"format": 1, "job": "%s", "coarse": %s%s}\n' "$job" "$coarse" "$stored" > target.json.new
  mv -T target.json.new target.json
fi
# A disk may have been elsewhere: flock would wait for ever for a FIFO, and follow a link.
if [ -L lock ] || { [ -e lock ] && [ ! -f lock ]; }; then rm -rf -- lock; fi
flock -x -w "$patience" -E 75 ./lock true
# What was to become a point then may look whole, and the disk may not have taken it.
if [ "$*" = work ] && { [ -e unwritten ] || [ -L unwritten ]; }; then
  # A user who is not root cannot remove what lies in a folder that he may not write to, though it is his own.
  [ "$(id -u)" = 0 ] || [ ! -d work ] || find work -type d ! -perm -u+rwx -execdir chmod u+rwx {} ";"
  rm -rf --one-file-system -- ./work
  rm -rf -- ./linked ./unwritten
fi
for folder in "$@"; do
  if [ -L "./$folder" ]; then
    echo ".poolferry/$folder is a link, and should be a folder that poolferry made" >&2
    exit 1
  fi
  mkdir -p -- "./$folder"
done

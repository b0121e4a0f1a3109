#!/bin/sh
# shellcheck shell=dash
# Stores a recovery kit, an archive on stdin, whole or not at all. /mnt is covered for this process alone.
# Arguments: the dataset for kits, the job.
# Why its digests are compared: they come last, and to tar the end of a cut link between two files is that of the archive.
dataset=$1 job=$2
zfs list -H -o name "$dataset" > /dev/null 2>&1 ||
  zfs create -o mountpoint=legacy -o readonly=off "$dataset" || exit
# The disk may have been elsewhere: nothing on it is run or followed.
mount_safely rw "$dataset" /mnt && cd /mnt || exit
rm -rf "./.new-$job" && mkdir -m 700 "./.new-$job" && tar -x -f - -C "./.new-$job" || exit
(cd "./.new-$job" && sha256sum --check --quiet --strict SHA256SUMS) || exit
rm -rf "./.old-$job"
if [ -e "./$job" ] || [ -L "./$job" ]; then mv -T "./$job" "./.old-$job" || exit; fi
mv -T "./.new-$job" "./$job" && rm -rf "./.old-$job"
status=$?
cd / || exit
umount /mnt
exit "$status"

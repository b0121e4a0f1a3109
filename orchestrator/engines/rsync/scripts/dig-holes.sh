#!/bin/sh
# shellcheck shell=dash
# Makes holes in files of a work tree where the same file has some in a point. Arguments: the point's tree, the work tree. The
# input names the files, NUL-terminated.
# Names without ./ before them would be words of find's own.
# Why find first: it tells which of them are there, and only those that have a hole are worth a look.
set -e
point=$1 work=$2
several=3
# The least difference between size and space, in KiB, that is a hole: elsewhere it may be a filesystem that packs or compresses.
least=64
# Digs in one file. $2: the inodes of files of which all names are here. Ends with $several where it has several, and none are told.
dig() (
  enter_place "$work"
  case $1 in */*) enter_folder "${1%/*}" ;; esac
  name=${1##*/}
  if ! lone_file "$name"; then
    if [ -L "./$name" ] || [ ! -f "./$name" ]; then exit 0; fi
    [ $# = 2 ] || exit "$several"
    case " $2" in *" $(stat -c %i -- "./$name") "*) ;; *) exit 0 ;; esac
  fi
  time=$(stat -c %.9Y -- "./$name")
  # Not every filesystem has holes.
  fallocate --dig-holes "./$name" 2>/dev/null || true
  touch -m -d "@$time" -- "./$name"
)
# Prints the inodes of the files with several names of which the work tree has all: another may be a point's, too.
whole_files() (
  enter_place "$work"
  find . -xdev -type f -size "+$((least - 1))k" -links +1 -printf "%i %n\n" | sort | uniq -c | while read -r found inode names; do
    [ "$found" != "$names" ] || printf "%s " "$inode"
  done
)
enter_place "$point"
case $(stat -f -c %T . 2>/dev/null || true) in ext* | xfs | tmpfs) least=8 ;; esac
export LC_ALL=C least
# shellcheck disable=SC2016
LC_ALL=C grep -az "^\./" | xargs -0 -r sh -c 'find "$@" -maxdepth 0 -type f -size "+$((least - 1))k" -printf "%b %s %p\0" 2>/dev/null || true' sh | tr "\n\0" "\0\n" |
  while read -r blocks size path; do
    [ $((blocks * 512 + least * 1024)) -le "$size" ] || continue
    path=${path#./}
    dig "$path" || [ $? != "$several" ] || {
      whole=${whole-$(whole_files || true)}
      dig "$path" "$whole" || true
    }
  done

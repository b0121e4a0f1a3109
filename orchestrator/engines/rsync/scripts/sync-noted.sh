#!/bin/sh
# shellcheck shell=dash
# For other scripts. sync_noted FOLDER, in our own folder, writes all of the filesystem to the disk, and keeps a note until that is done.
# Why: Linux tells once that a write failed, and holds for written from then on what the disk never took. So who finds the note
# believes nothing of what was to be written: it looks whole, as it is in memory still.
sync_noted() {
  rm -rf -- ./unwritten
  (umask 077; : > unwritten)
  sync -- unwritten
  sync -f "$1"
  rm -f -- unwritten
}

#!/bin/sh
# shellcheck shell=dash
# For other scripts. buffered MEMORY WORD… feeds zfs with these words from its input, through a buffer.
buffered() {
  memory=$1
  shift
  mbuffer -q -s 128k -m "$memory" | zfs "$@"
}

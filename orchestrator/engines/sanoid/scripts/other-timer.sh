#!/bin/sh
# shellcheck shell=dash
# Prints "both" when a timer of sanoid's own runs, with rules of its own. Argument: the timer.
timer=$1
if systemctl is-active -q "$timer" && grep -q "^[[:space:]]*[[]" /etc/sanoid/sanoid.conf; then
  echo both
fi

#!/bin/sh
# shellcheck shell=dash
# Prints "closed" where rsync is started so that no link in a tree leads anywhere, "open" where that cannot be, and "user" where
# it has no more rights than the user who looks.
if [ "$(id -u)" != 0 ]; then
  echo user
elif (without_links 77 -- printenv POOLFERRY_ROOT) > /dev/null 2>&1; then
  echo closed
else
  echo open
fi

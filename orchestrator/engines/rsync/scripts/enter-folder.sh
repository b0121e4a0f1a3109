#!/bin/sh
# shellcheck shell=dash
# For other scripts. enter_folder PATH goes down a path part by part, along real folders alone, and ends the script
# where a part is a link.
enter_folder() {
  way=$1
  while [ -n "$way" ]; do
    part=${way%%/*}
    case $way in */*) way=${way#*/} ;; *) way= ;; esac
    if [ -L "./$part" ]; then
      echo "$part in $1 is a link, and was a folder before" >&2
      exit 1
    fi
    step "$part" || { echo "$part in $1 was exchanged for a link just now" >&2; exit 1; }
  done
}
# Whether a name here is a regular file with this one name only.
lone_file() {
  [ -f "./$1" ] && [ ! -L "./$1" ] && [ "$(stat -c %h -- "./$1")" = 1 ]
}

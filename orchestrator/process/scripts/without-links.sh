#!/bin/sh
# shellcheck shell=dash
# For other scripts. without_links becomes a program for which no link in any folder leads anywhere; its arguments are those of
# without-links.pl, with the numbers 7, 8 and 9. Where there is no perl, the folders are opened as they are.
without_links() {
  if command -v perl > /dev/null; then
    exec perl -e "$(without_links_in_perl)" -- "$@"
  fi
  unset POOLFERRY_ROOT
  [ "$(id -u 2> /dev/null)" != 0 ] || echo "without-links.pl: links lead on ($1)" >&2
  shift
  while [ "$1" != -- ]; do
    case $1 in
      8=*) [ ! -d "${1#8=}" ] || exec 8< "${1#8=}/." ;;
      9=*) [ ! -d "${1#9=}" ] || exec 9< "${1#9=}/." ;;
    esac
    shift
  done
  shift
  exec "$@"
}

#!/bin/sh
# shellcheck shell=dash
# For other scripts. enter_place PATH goes to a folder that a person named, part by part. A link on the way is followed only
# when root or we ourselves made it, in a folder where nobody else can exchange it: any other user could lead us elsewhere.
# With a second word, folders that lack are made. POOLFERRY_ROOT: a "/" in which no link leads anywhere, see without-links.pl.
enter_place() {
  slow=
  walk "$@" || { slow=yes && walk "$@"; } || exit
}
walk() {
  left=$1 make=${2-} links=0
  cd -P "${POOLFERRY_ROOT-}/" || exit
  while [ -n "$left" ]; do
    part=${left%%/*}
    case $left in */*) left=${left#*/} ;; *) left= ;; esac
    case $part in
      "" | .) continue ;;
      ..) cd -P .. && continue ;;
    esac
    if [ -L "./$part" ]; then
      # First the folder: only where names are ours is what is asked of one name, and then of it again, the same.
      if ! our_names || ! ours "$(stat -c %u -- "./$part")"; then
        echo "${PWD%/}/$part is a link of another user, who could lead it elsewhere" >&2
        exit 1
      fi
      links=$((links + 1))
      [ "$links" -le 40 ] || exit
      goal=$(readlink -n -- "./$part" && printf /) || return 1
      case $goal in /*) cd -P "${POOLFERRY_ROOT-}/" || exit ;; esac
      left=$goal$left
      continue
    fi
    [ -z "$make" ] || [ -d "./$part" ] || mkdir -- "./$part" || exit
    step "$part" || return 1
  done
}
ours() { [ "$1" = 0 ] || [ "$1" = "$(id -u)" ]; }
# our_names tells whether only root and we can exchange names in this folder; with the sticky bit all rename only their own.
our_names() {
  about=$(stat -c "%u %g %a" .) || return 1
  ours "${about%% *}" || return 1
  mode=${about##* } group=${about#* }
  case $mode in
    [1357]??? ) return 0 ;;
    *[2367] ) return 1 ;;
    *[2367]? ) group=${group% *} && { [ "$group" = 0 ] || [ "$group" = "$(id -g)" ]; } ;;
  esac
}
# step NAME goes into a folder here, and fails where that led elsewhere: the name may be exchanged for a link just now. Where
# we are tells the kernel; a filesystem that takes a and A for one name may tell the other, then (slow) the folder above does.
step() {
  before=$PWD
  above=${slow:+$(stat -c %d:%i .)}
  cd -P -- "./$1" || exit
  [ "$PWD" != "${before%/}/$1" ] || return 0
  if [ -n "$slow" ] && [ "$(stat -c %d:%i ..)" != "$above" ]; then
    echo "$1 in $before was exchanged for a link just now" >&2
    exit 1
  fi
  [ -n "$slow" ]
}

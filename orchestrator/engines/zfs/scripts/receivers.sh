#!/bin/sh
# shellcheck shell=dash
# Prints for each process that receives a stream a line "=process PID", then its arguments, one a line. Of another user than root and
# ours only one who may receive there, as `zfs allow` says: anybody may give a process of hers any words. Of her only what it does is
# printed, and none of its options, as our mark in hers would be no word of ours.
# Argument: only into datasets below this one, or none.
# A process may end meanwhile: then its arguments are missing, and that is fine.
# Newlines in an argument are printed as blanks, as no dataset has one.
below=$1 asked=0
# grants PERMISSIONS tells whether they hold that of receiving, by themselves or by a set that does.
grants() {
  case ,$1, in *,receive,* | *,receive:append,*) return 0 ;; esac
  for known in $sets; do
    case ,$1, in *",$known,"*) return 0 ;; esac
  done
  return 1
}
# may_receive USER DATASET tells whether the user, by her number, may receive into the dataset, or a new one of that name. What is asked for has an
# end: many words of many processes take a user nothing.
may_receive() {
  asked=$((asked + 1))
  [ "$asked" -le 20 ] || return 1
  user=$(id -nu -- "$1" 2> /dev/null) || return 1
  groups=" $(id -Gn -- "$1" 2> /dev/null) " at=$2
  until allowed=$(zfs allow "$at" 2> /dev/null); do
    case $at in */*) at=${at%/*} ;; *) return 1 ;; esac
  done
  sets=
  while read -r set held _; do
    case $set in @*) ! grants "$held" || sets="$sets $set" ;; esac
  done << EOF
$allowed
EOF
  here='' kind=''
  while read -r first second third _; do
    case $first in
      ----) case "$second $third" in "Permissions on") here=${here:+above} && here=${here:-itself} ;; esac ;;
      Local+Desc*) kind=everywhere ;;
      Local) kind=itself ;;
      Desc*) kind=above ;;
      Permission | Create) kind=none ;;
      everyone) [ "$kind" != everywhere ] && [ "$kind" != "$here" ] || ! grants "$second" || return 0 ;;
      user | group)
        [ "$kind" = everywhere ] || [ "$kind" = "$here" ] || continue
        if [ "$first $second" != "user $user" ]; then
          case "$first $groups" in "group "*" $second "*) ;; *) continue ;; esac
        fi
        ! grants "$third" || return 0 ;;
    esac
  done << EOF
$allowed
EOF
  return 1
}
# No name below /proc has a blank.
# shellcheck disable=SC2013
for file in $(grep -lszxE "receive|recv" /proc/[0-9]*/cmdline); do
  process=${file%/cmdline}
  words=$(tr "\n\0" " \n" 2> /dev/null < "$file")
  dataset=$(printf "%s\n" "$words" | tail -n 1)
  if [ -n "$below" ]; then
    case $dataset in "$below"/*) ;; *) continue ;; esac
  fi
  real=
  if ! is_own_process "$process"; then
    case $words in zfs"
"rec*"
"* | */zfs"
"rec*"
"*) ;; *) continue ;; esac
    may_receive "$real" "$dataset" || continue
    words="zfs
receive
$dataset"
  fi
  printf "=process %s\n%s\n" "${process##*/}" "$words"
done
exit 0

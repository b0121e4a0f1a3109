#!/bin/sh
# shellcheck shell=dash
# For other scripts. properties_by_line [-r] NAME… prints name, property, value, received and source of all properties that are
# set, one a line.
# Why not `zfs get all` alone: an owner may give a property a value of several lines, which then look like properties of other
# datasets, or like parts of what a script prints. Of such a value the first line is printed.
# Why what was never received is asked for apart: for each that was not, zfs asks the kernel once for each dataset, which was most of
# all that a kit asks. Where a function `known_received` stands before, it tells what was received; else it may be all that has a source.
properties_by_line() {
  named=$(zfs get -H -t filesystem,volume -o name,property,source all "$@") || return
  datasets=$(printf "%s\n" "$named" | cut -f 1 | uniq)
  many=$(printf "%s\n" "$datasets" | wc -l)
  properties=$(printf "%s\n" "$named" | cut -f 2 | sort -u | grep -v "^-")
  given=$(printf "%s\n" "$named" | grep -v "	-\$" | cut -f 2 | sort -u)
  ! command -v known_received > /dev/null || given=$(known_received)
  # What an owner writes as she likes; all else has values of zfs's own.
  free="^mountpoint$|^sharenfs$|^sharesmb$|^keylocation$|context$|:"
  for kinds in -vE -E; do
    some=$(printf "%s\n" "$properties" | grep "$kinds" "$free")
    columns=name,property,value,source
    told=$(printf "%s\n" "$some" | grep -vxF -e "$given" | by_200 "$@") || return
    printf "%s\n" "$told" | sed "s/	\([^	]*\)\$/	-	\1/" | without_unset
    columns=name,property,value,received,source
    told=$(printf "%s\n" "$some" | grep -xF -e "$given" | by_200 "$@") || return
    printf "%s\n" "$told" | without_unset
  done
}
by_200() {
  xargs -r -n 200 | while IFS= read -r part; do
    some_properties "$part" "$@" || exit
  done
}
with_commas() { printf "%s" "$1" | tr " " ","; }
count_words() {
  # shellcheck disable=SC2086
  set -- $1
  echo $#
}
has_lines() { [ "$(printf "%s\n" "$2" | wc -l)" -eq "$1" ]; }
# some_properties PROPERTIES [-r] NAME… prints these properties; of each dataset by itself where one has several lines.
some_properties() {
  some=$1
  shift
  lines=$(zfs get -Hp -t filesystem,volume -o "$columns" "$(with_commas "$some")" "$@")
  if has_lines $(($(count_words "$some") * many)) "$lines"; then
    printf "%s\n" "$lines"
  else
    printf "%s\n" "$datasets" | while IFS= read -r dataset; do of_dataset "$dataset" "$some" || exit; done
  fi
}
# ask COLUMNS PROPERTIES DATASET prints them; nothing of a dataset that is gone meanwhile. Any other failure is one.
ask() {
  { failed=$(zfs get -Hp -o "$1" "$2" "$3" 2>&1 >&4) && return; } 4>&1
  case $failed in *"': dataset does not exist"*) return 0 ;; esac
  printf "%s\n" "$failed" >&2
  return 1
}
# of_dataset DATASET PROPERTIES prints these properties of one dataset; those of several lines by themselves.
of_dataset() {
  lines=$(ask "$columns" "$(with_commas "$2")" "$1") || return
  [ -n "$lines" ] || return 0
  if has_lines "$(count_words "$2")" "$lines"; then
    printf "%s\n" "$lines"
    return
  fi
  for property in $2; do
    lines=$(ask "$columns" "$property" "$1") || return
    has_lines 1 "$lines" || lines=$(by_column "$1" "$property") || return
    [ -z "$lines" ] || printf "%s\n" "$lines"
  done
}
# by_column DATASET PROPERTY prints one of several lines: of each column the first line.
by_column() {
  line=$(printf "%s\t%s" "$1" "$2")
  for column in $(printf "%s" "${columns#name,property,}" | tr "," " "); do
    lines=$(ask "$column" "$2" "$1") || return
    [ -n "$lines" ] || [ "$column" = value ] || return 0
    line=$(printf "%s\t%s" "$line" "$(printf "%s\n" "$lines" | head -n 1)")
  done
  printf "%s\n" "$line"
}
# What does not apply to a dataset is listed as a property without a value.
without_unset() { grep -v "	-	-	-\$\|^\$" || :; }

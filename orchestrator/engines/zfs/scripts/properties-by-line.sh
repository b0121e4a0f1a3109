#!/bin/sh
# shellcheck shell=dash
# For other scripts. properties_by_line [-r] NAME… prints name, property, value, received and source of all properties that are
# set, one a line.
# Why not `zfs get all` alone: an owner may give a property a value of several lines, which then look like properties of other
# datasets, or like parts of what a script prints. Of such a value the first line is printed.
columns=name,property,value,received,source
properties_by_line() {
  named=$(zfs get -H -t filesystem,volume -o name,property all "$@") || return
  datasets=$(printf "%s\n" "$named" | cut -f 1 | uniq)
  properties=$(printf "%s\n" "$named" | cut -f 2 | sort -u | grep -v "^-")
  # What an owner writes as she likes; all else has values of zfs's own.
  free="^mountpoint$|^sharenfs$|^sharesmb$|^keylocation$|:"
  list=$(printf "%s\n" "$properties" | grep -vE "$free" | tr "\n" ",")
  lines=$(zfs get -Hp -t filesystem,volume -o "$columns" "${list%,}" "$@") || return
  printf "%s\n" "$lines" | without_unset
  printf "%s\n" "$properties" | grep -E "$free" | xargs -r -n 200 | while IFS= read -r some; do
    lines=$(zfs get -Hp -t filesystem,volume -o "$columns" "$(with_commas "$some")" "$@")
    if has_lines $(($(count_words "$some") * $(printf "%s\n" "$datasets" | wc -l))) "$lines"; then
      printf "%s\n" "$lines"
    else
      printf "%s\n" "$datasets" | while IFS= read -r dataset; do of_dataset "$dataset" "$some"; done
    fi
  done | without_unset
}
with_commas() { printf "%s" "$1" | tr " " ","; }
count_words() { printf "%s\n" "$1" | wc -w; }
has_lines() { [ "$(printf "%s\n" "$2" | wc -l)" -eq "$1" ]; }
# of_dataset DATASET PROPERTIES prints these properties of one dataset; those of several lines by themselves.
of_dataset() {
  lines=$(zfs get -Hp -o "$columns" "$(with_commas "$2")" "$1") || return 0
  if has_lines "$(count_words "$2")" "$lines"; then
    printf "%s\n" "$lines"
    return
  fi
  for property in $2; do
    lines=$(zfs get -Hp -o "$columns" "$property" "$1") || continue
    has_lines 1 "$lines" || lines=$(by_column "$1" "$property")
    printf "%s\n" "$lines"
  done
}
# by_column DATASET PROPERTY prints one of several lines: of the value and of what was received the first line.
by_column() {
  printf "%s\t%s" "$1" "$2"
  for column in value received source; do
    printf "\t%s" "$(zfs get -Hp -o "$column" "$2" "$1" | head -n 1)"
  done
}
# What does not apply to a dataset is listed as a property without a value.
without_unset() { grep -v "	-	-	-\$" || :; }

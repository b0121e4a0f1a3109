#!/bin/sh
# shellcheck shell=dash
# For scripts with mounts of their own. let_go_of_disks WORDS unmounts here the disks that the words do not name, where an unmount
# elsewhere does not come through (no systemd): else who lets go of another disk meanwhile would find it busy. As without-links.pl does:
# none that belongs to the system or to users' homes, and none of a pool of which a word names a dataset.
let_go_of_disks() {
  grep -q "^[^ ]* [^ ]* [^ ]* [^ ]* / .* master:[0-9]* .*- " /proc/self/mountinfo && return
  # shellcheck disable=SC2016
  words=$(printf "%s\n" "$PWD" "$@") awk '
    BEGIN { count = split(ENVIRON["words"], words, "\n") }
    function used(at, kind, from,   each, number) {
      gsub(/\\040/, " ", at)
      gsub(/\\011/, "\t", at)
      gsub(/\\134/, "\\", at)
      for (number = 1; number <= count; number++) {
        each = words[number]
        if (index(each "/", at "/") == 1 || (substr(each, 1, 1) == "/" && index(at "/", each "/") == 1)) return 1
        if (kind == "zfs" && each ~ /^\/?[A-Za-z]/) { sub(/^\//, "", each); sub(/[\/@#].*/, "", each); if (index(from "/", each "/") == 1) return 1 }
      }
      return 0
    }
    { for (field = 7; field < NF && $field != "-"; field++); kind = $(field + 1); from = $(field + 2) }
    $5 ~ /^\/($|(usr|etc|var|home|root|opt|boot|nix|lib[A-Za-z0-9_]*|s?bin)(\/|$))/ { next }
    (kind == "zfs" || from ~ /^\/dev\//) && !used($5, kind, from) { disks[++found] = $5 }
    END { while (found) print disks[found--] }' /proc/self/mountinfo |
    while IFS= read -r disk; do
      umount -l -- "$(printf %b "$(printf %s "$disk" | sed 's/\\\([0-7][0-7][0-7]\)/\\0\1/g')")" 2>/dev/null || :
    done
}

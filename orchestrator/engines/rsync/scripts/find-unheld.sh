#!/bin/sh
# shellcheck shell=dash
# Reads what a target cannot hold, as try-abilities.sh prints it, and looks whether the source has it: for each such ability it
# names one entry, and ends with 76. Arguments: the source, "one-filesystem" or nothing, "points" where points share files or nothing,
# and where only some folders of the source are copied, those.
source=$1 single=$2 points=$3
shift 3
enter_place "$source"
set -f
first() {
  LC_ALL=C find . ${single:+-xdev} \( -name ".~poolferry-partial~" -o -name .poolferry-restoring.json \) -prune -o \
    "$@" -printf "%p\0" -quit 2> /dev/null | tr "\n\0" "?\n"
}
names() {
  LC_ALL=C find . ${single:+-xdev} \( -name ".~poolferry-partial~" -o -name .poolferry-restoring.json \) -prune -o \
    -printf "%p\0" 2> /dev/null
}
# with_attribute PATTERN names a file with an attribute whose name fits.
with_attribute() {
  command -v getfattr > /dev/null || return 0
  names | xargs -0 -r getfattr -h -m "$1" -- 2> /dev/null | sed -n "s/^# file: //p" | head -n 1
}
with_list() {
  command -v getfacl > /dev/null || return 0
  names | xargs -0 -r getfacl -p -s -c -- 2> /dev/null | head -n 1 | grep -q . || return 0
  names | xargs -0 -r getfacl -p -s -- 2> /dev/null | sed -n "s/^# file: //p" | head -n 1
}
found=0
# look PART names for each ability on its input an entry of the part that is here.
look() {
  while read -r ability one others; do
    case $ability in
      owners)
        held="-gid ${others%% *}"
        for group in ${others#* }; do held="$held -o -gid $group"; done
        # What cannot be read is not copied either.
        # shellcheck disable=SC2086 # one word each
        example=$(first \( -type l -o -readable \) \( ! -uid "$one" -o ! \( $held \) \)) ;;
      modes) example=$(first \( \( -type f ! -perm "$one" \) -o \( -type d ! -perm "$others" \) \)) ;;
      hard-links) if [ -n "$points" ]; then example=points; else example=$(first -type f -links +1); fi ;;
      symlinks) example=$(first -type l) ;;
      fifos) example=$(first \( -type p -o -type s \)) ;;
      devices) example=$(first \( -type b -o -type c \)) ;;
      acls) example=$(with_list) ;;
      xattrs) example=$(with_attribute "^user\\.") ;;
      capabilities) example=$(with_attribute "^(security\\.capability|trusted\\.)") ;;
      long-names) example=$(first -regextype posix-extended -regex ".*/[^/]{144,}") ;;
      characters) example=$(first \( -name '*[:*?"<>|\\]*' -o -name "* " -o -name "*." ! -name . \)) ;;
      bytes) example=$(names | LC_ALL=C.UTF-8 grep -zavx ".*" | head -z -n 1 | tr "\n\0" "?\n") ;;
      upper-case) example=$(names | LC_ALL=C tr "[:upper:]" "[:lower:]" | LC_ALL=C sort -z | uniq -zd | head -z -n 1 | tr "\n\0" "?\n") ;;
      any-times | fake-super) example=. ;;
      late-times) example=$(first -newermt "@$one") ;;
      early-times) example=$(first ! -newermt "@$((one - 1))") ;;
      *) example= ;;
    esac
    if [ -n "$example" ]; then
      echo "cannot hold $ability: ${1:+$1/}${example#./}" >&2
      found=76
    fi
  done
}
lacks=$(cat)
if [ $# = 0 ]; then set -- ""; fi
for part in "$@"; do
  [ -z "$part" ] || enter_place "${source%/}/$part"
  look "$part" << EOF
$lacks
EOF
done
exit "$found"

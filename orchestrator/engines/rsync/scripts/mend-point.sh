#!/bin/sh
# shellcheck shell=dash
# Makes entries of an older point what they are in a sound one. Files are written in place: whoever shares them is mended, too.
# Nobody but us may enter the points, so that no name in them can be exchanged meanwhile.
# Arguments: the target's root, the sound point, the damaged one; what is done; rsync's flags for what the job copies.
#   apart: takes names away that have become names of another file, each named behind the number of its own inode;
#   contents: writes the entries that are named; names: makes those that are names of one file in the sound point such here;
#   top: gives the point's own folder its owner and mode; times: gives entries theirs, each named behind its time, "@SECONDS".
# The entries come NUL-terminated on the input, and behind them an end.
# Why an end: where a link was cut, the last name is half of one, and could be another file's.
set -e
enter_place "$1"
enter_room points
sound=$2 damaged=$3 what=$4
shift 4
if [ -L "$sound" ] || [ -L "$damaged" ]; then exit 1; fi
case $what in
  contents) set -- "$@" --no-implied-dirs --from0 --files-from=- --ignore-times --whole-file --inplace ;;
  names) set -- "$@" --no-implied-dirs --from0 --files-from=- ;;
  top) set -- "$@" "--exclude=/*" ;;
esac
# shellcheck disable=SC2016
apart='cd -P "$1/." || exit
exec xargs -0 -r -n 2 sh -c '"'"'seen=$(stat -c "%i %F" -- "$2" 2> /dev/null) || exit 0
case $seen in
  "$1 "* | *" directory") ;;
  *) rm -f -- "$2" ;;
esac'"'"' mend-point.sh'
# shellcheck disable=SC2016
times='cd -P "$1/." || exit
exec xargs -0 -r -n 2 touch -c -h -d'
# Numbers of one digit only where nothing else helps: those may be taken, see without_links.
# Times to the last digit: of a folder in which it has made a file, rsync otherwise compares whole seconds at its end.
tens=$(if command -v perl > /dev/null; then echo 7; fi)
old=${tens}9=$PWD/$damaged to=/proc/self/fd/${tens}9
LC_ALL=C sed -z "\$d" | (
  case $what in
    apart) without_links "${tens}7" "$old" -- sh -c "$apart" mend-point.sh "$to" ;;
    times) without_links "${tens}7" "$old" -- sh -c "$times" mend-point.sh "$to" ;;
  esac
  without_links "${tens}7" "${tens}8=$PWD/$sound" "$old" -- rsync --archive --hard-links --numeric-ids --modify-window=-1 "$@" \
    -- "/proc/self/fd/${tens}8/" "$to/"
)
sync -f "./$damaged"

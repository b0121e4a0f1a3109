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
  apart | times) ;;
  *) exit 2 ;;
esac
# Numbers of one digit only where nothing else helps: those may be taken, see without_links.
# To the last digit: of a folder in which it has made a file, rsync otherwise compares whole seconds at its end.
tens=$(if command -v perl > /dev/null; then echo 7; fi)
from=/proc/self/fd/${tens}8/ to=/proc/self/fd/${tens}9/
# shellcheck disable=SC2016
case $what in
  apart)
    apart='seen=$(stat -c "%i %F" -- "$2" 2> /dev/null) && [ "$seen" != "$1 ${seen#* }" ] && [ "${seen#* }" != directory ] && rm -f -- "$2" || :'
    set -- sh -c 'cd "$1" && exec xargs -0 -r -n 2 sh -c "$2" apart' mend-point.sh "$to" "$apart"
    ;;
  times) set -- sh -c 'cd "$1" && exec xargs -0 -r -n 2 touch -c -h -d' mend-point.sh "$to" ;;
  *) set -- rsync --archive --hard-links --numeric-ids --modify-window=-1 "$@" -- "$from" "$to" ;;
esac
LC_ALL=C sed -z "\$d" | (
  without_links "${tens}7" "${tens}8=$PWD/$sound" "${tens}9=$PWD/$damaged" -- "$@"
)
sync -f "./$damaged"

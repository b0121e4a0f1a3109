#!/bin/sh
# shellcheck shell=dash
# Prints what a point holds at a path: folder, file or absent. What a link of its owner's leads to is not in the point.
# Arguments: the point's tree, the path in it.
enter_place "$1"
name=${2##*/}
case $2 in
  */*)
    folder=${2%/*}
    (enter_folder "$folder") 2> /dev/null || { echo absent; exit 0; }
    enter_folder "$folder" ;;
esac
wanted=./$name
if [ -d "$wanted" ] && [ ! -L "$wanted" ]; then
  echo folder
elif [ -e "$wanted" ] || [ -L "$wanted" ]; then
  echo file
else
  echo absent
fi

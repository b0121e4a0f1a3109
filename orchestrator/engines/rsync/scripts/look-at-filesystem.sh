#!/bin/sh
# shellcheck shell=dash
# Prints the user that this runs as, the type of the filesystem on which a folder lies or will lie, and "ro" where nothing
# can be written there. Argument: the folder.
place=$1
while [ ! -d "$place/" ] && [ -n "$place" ]; do place=${place%/*}; done
id -u
findmnt -n -o FSTYPE -T "${place:-/}" 2> /dev/null || stat -f -c %T "${place:-/}"
# A filesystem with an error may be shut against writing without being mounted so: then only its options tell.
case ,$(findmnt -n -o OPTIONS -T "${place:-/}" 2> /dev/null), in
  *,emergency_ro,* | *,shutdown,*) echo ro ;;
  *) [ -w "${place:-/}" ] || echo ro ;;
esac

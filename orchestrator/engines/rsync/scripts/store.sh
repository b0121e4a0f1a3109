#!/bin/sh
# shellcheck shell=dash
# Writes its input to a file in a folder of ours, whole or not at all, for our eyes alone. Argument: the file.
set -e
file=$1
name=${file##*/}
umask 077
enter_place "${file%/*}"
be_ours "${file%/*}"
# What lay there under that name may be a link or a FIFO: never written through.
if [ -e "./$name.new" ] || [ -L "./$name.new" ]; then rm -f -- "./$name.new"; fi
set -C
cat > "./$name.new"
sync -- "./$name.new"
mv -T -- "./$name.new" "./$name"

#!/bin/sh
# shellcheck shell=dash
# Removes a small file of ours that holds no more. Argument: the file.
set -e
file=$1
name=${file##*/}
enter_place "${file%/*}"
be_ours "${file%/*}"
rm -f -- "./$name"

#!/bin/sh
# shellcheck shell=dash
# For other scripts. or_end STATUS, behind `||` of a part of a pipeline, ends the script unless the part ended with that status.
# Why: what ends a program from outside, such as a machine without memory, must not pass for the end of its list.
or_end() {
  [ "$?" = "$1" ] || {
    echo "a program that lists files was ended in the middle of its list" >&2
    kill "$$"
  }
}

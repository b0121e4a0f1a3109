#!/bin/sh
# shellcheck shell=dash
# Runs zfs where a login does not find it by itself. Arguments: its words.
zfs "$@"

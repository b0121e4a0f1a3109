#!/bin/sh
# shellcheck shell=dash
# Runs zpool where a login does not find it by itself. Arguments: its words.
# A login without a terminal, and an ordinary user, often have no sbin in their PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
exec zpool "$@"

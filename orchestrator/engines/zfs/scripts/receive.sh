#!/bin/sh
# shellcheck shell=dash
# Receives a stream through a buffer of this end. Arguments: the buffer's memory, seconds of patience, the words of zfs.
# Why patience: a machine that lost its power tells nobody, and sshd would wait for two hours for it.
memory=$1 patience=$2
shift 2
mbuffer -q -s 128k -m "$memory" -W "$patience" | zfs "$@"

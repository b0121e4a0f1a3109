#!/bin/sh
# shellcheck shell=dash
# Becomes the far half of an rsync, which follows no link in any folder. Arguments: those of without_links.
without_links "$@"

#!/bin/sh
# shellcheck shell=dash
# Prints an archive of the recovery kits in a folder. Argument: the folder.
pack_folder "$1"

#!/bin/sh
# shellcheck shell=dash
# Prints all accounts of this machine: users, then groups.
printf "=users\n"
getent passwd
printf "=groups\n"
getent group

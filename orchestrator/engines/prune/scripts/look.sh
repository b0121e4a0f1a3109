#!/bin/sh
# shellcheck shell=dash
# Prints this machine's time, the guid of a dataset, and of each snapshot of it and of all below it, oldest first: name, guid, createtxg,
# creation, written, referenced, userrefs, clones. Argument: the dataset.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
date +%s
zfs list -Hp -o guid "$1" || exit
zfs list -Hp -r -t snapshot -s createtxg -o name,guid,createtxg,creation,written,referenced,userrefs,clones "$1"

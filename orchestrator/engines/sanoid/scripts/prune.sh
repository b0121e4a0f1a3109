#!/bin/sh
# shellcheck shell=dash
# Lets sanoid remove the snapshots that no rule keeps.
# Arguments: sanoid's folder or nothing, the text of sanoid.conf or nothing, another folder with one or nothing.
# Ends with 70 when one could not go, unless something else needs it: that stays, and is told. Why: sanoid ends with 0.
run_sanoid "$1" "$2" "$3" --prune-snapshots
needed="dataset is busy|being held|has dependent clones|dataset does not exist|could not find any snapshots to destroy"
# shellcheck disable=SC2154
! grep -E "^(cannot|internal error|FATAL|ERROR)" "$errors" | grep -qvE "$needed" || exit 70

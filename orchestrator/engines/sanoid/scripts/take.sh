#!/bin/sh
# shellcheck shell=dash disable=SC2154 # run_sanoid sets $folder and $errors
# Lets sanoid take the snapshots that are due, then looks whether they are there.
# Arguments: sanoid's folder or nothing, the text of sanoid.conf or nothing, another folder with one or nothing, the root, then
# KIND=SECONDS for each kind of which a snapshot shall be there that is no older.
# Ends with 70 when sanoid says that it could not, with 71 when one is not there. Why: sanoid ends with 0 when `zfs snapshot`
# fails.
run_sanoid "$1" "$2" "$3" --take-snapshots
use=$3 root=$4 taken="dataset already exists"
shift 4
# Who may take snapshots below the root can have those names there before: then each dataset by itself, so that only hers has none.
# What another folder says is its owner's, and is not done otherwise.
if [ -z "$use" ] && grep -q "^cannot create snapshot '[^']*': $taken\$" "$errors"; then
  sed "s/^recursive = zfs\$/recursive = yes/" "$folder/sanoid.conf" > "$folder/each" || exit
  mv -- "$folder/each" "$folder/sanoid.conf" || exit
  run_sanoid "$folder" "" "" --take-snapshots
fi
# A failure is none only where zfs says of that very snapshot that it is there; each one is named, at the end.
grep "^CRITICAL ERROR" "$errors" > "$folder/failed" || [ $? = 1 ] || exit
while IFS= read -r line; do
  [ -z "$use" ] || exit 70
  name=${line#"CRITICAL ERROR: "*" snapshot "}
  name=${name%% failed,*}
  grep -qxF "cannot create snapshot '$name': $taken" "$errors" || exit 70
  echo "not taken, as one of that name was there: $name"
done < "$folder/failed"
[ $# -gt 0 ] || exit 0
zfs list -Hp -o creation,name -t snapshot -d 1 -s creation "$root" > "$folder/there" || exit
for due in "$@"; do
  kind=${due%=*}
  newest=$(grep "@autosnap_[^@]*_$kind\$" "$folder/there" | tail -n 1 | cut -f 1)
  if ! [ "${newest:-0}" -ge "${due#*=}" ]; then
    echo "no $kind snapshot of $root was taken" >&2
    exit 71
  fi
done

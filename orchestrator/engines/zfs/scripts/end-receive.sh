#!/bin/sh
# shellcheck shell=dash
# Ends a process that receives into a dataset, and waits until it is gone. Another process that has got its number since is
# left alone. Arguments: the process, the dataset, "sudo" where ending it needs that, else "plain".
process=$1 dataset=$2 how=$3
end() {
  if [ "$how" = sudo ]; then
    sudo -n kill -"$1" "$process"
  else
    kill -"$1" "$process"
  fi
}
# Whether it is still `zfs receive … DATASET`. A process that has ended and is not waited for has no arguments any more.
still_receives() {
  tr "\0" "\n" 2>/dev/null < "/proc/$process/cmdline" | {
    IFS= read -r program
    IFS= read -r verb
    last=
    while IFS= read -r word; do
      last=$word
    done
    [ "${program##*/}" = zfs ] && { [ "$verb" = receive ] || [ "$verb" = recv ]; } && [ "$last" = "$dataset" ]
  }
}
[ -r "/proc/$process/cmdline" ] || exit 0
still_receives || exit 0
end TERM
looks=0
while still_receives; do
  looks=$((looks + 1))
  # It has ten seconds to hear, and ten more to be killed.
  [ "$looks" -ne 50 ] || end KILL
  if [ "$looks" -ge 100 ]; then
    printf "the receiving process %s does not end\n" "$process" >&2
    exit 1
  fi
  sleep 0.2
done 2>/dev/null
exit 0

#!/bin/sh
# shellcheck shell=dash
# Tries what a target can hold, in a folder of its own that is removed again, and prints what it cannot, one ability a line with
# what it has in its place. Arguments: the target's root, the abilities to try.
# Each thing that is tried has a name of its own, and one stat tells of all: a program's start takes longer than what it does here.
set -e
root=$1
shift
for program in stat id chown chmod ln mkdir mkfifo mknod rm rmdir touch; do
  command -v "$program" > /dev/null || { echo "sh: 1: $program: not found" >&2 && exit 127; }
done
versions=$(
  for program in stat touch mv find; do "$program" --version || :; done 2> /dev/null
)
case $versions in
  *"(GNU coreutils)"*"(GNU coreutils)"*"(GNU coreutils)"*"(GNU findutils)"*) ;;
  *)
    for program in stat touch mv find; do
      case $("$program" --version 2> /dev/null) in
        *"GNU coreutils"* | *"GNU findutils"*) ;;
        *) echo "not GNU's: $program" >&2 && exit 1 ;;
      esac
    done ;;
esac
enter_place "$root" make
umask 077
[ -d .poolferry ] || mkdir .poolferry
enter_room .poolferry
[ -L abilities ] || [ ! -e abilities ] || rm -rf -- ./abilities
mkdir ./abilities
enter_room abilities
leave() {
  cd -P .. && rm -rf -- ./abilities && cd -P .. && rmdir --ignore-fail-on-non-empty ./.poolferry
}
trap leave EXIT
cannot() {
  # A target that is full can hold nothing: that is another failure, and it has its own words.
  rm -f -- ./new
  : > ./new
  echo "$@"
}
: > ./new
for ability in "$@"; do
  case $ability in
    owners)
      : > ./owned
      chown 12345:12345 ./owned 2> /dev/null || : ;;
    modes)
      : > ./file
      mkdir -m 0751 ./folder 2> /dev/null || [ -d ./folder ] || mkdir ./folder
      chmod 0640 ./file 2> /dev/null || : ;;
    times)
      : > ./time
      : > ./late
      : > ./early
      touch -m -d @1000000000 ./time 2> /dev/null || :
      touch -m -d @4294967999 ./late 2> /dev/null || touch -m -d @2147483647 ./late 2> /dev/null || :
      touch -m -d @-86400 ./early 2> /dev/null || touch -m -d @315532800 ./early 2> /dev/null || : ;;
  esac
done
owner='' file='' folder='' time='' late='' early=''
while read -r name who mode changed; do
  case $name in
    ./owned) owner=$who ;;
    ./file) file=$mode ;;
    ./folder) folder=$mode ;;
    ./time) time=$changed ;;
    ./late) late=$changed ;;
    ./early) early=$changed ;;
  esac
done << EOF
$(stat -c "%n %u:%g %a %Y" -- ./*)
EOF
long=$(printf %0255d 0)
characters="a:b?|*"
bytes=$(printf "caf\351")
for ability in "$@"; do
  case $ability in
    owners)
      if [ "$owner" != 12345:12345 ]; then
        rm -f -- ./owned
        : > ./owned
        user=$(stat -c %u ./owned)
        groups=$(stat -c %g ./owned)
        [ "$user" != "$(id -u)" ] || groups="$groups $(id -G)"
        cannot owners "$user" "$groups"
      fi ;;
    modes) [ "$file $folder" = "640 751" ] || cannot modes "$file $folder" ;;
    hard-links)
      { ln ./new ./linked 2> /dev/null && [ ./new -ef ./linked ]; } || cannot hard-links ;;
    symlinks)
      { ln -s nowhere ./link 2> /dev/null && [ -L ./link ]; } || cannot symlinks ;;
    fifos)
      { mkfifo ./fifo 2> /dev/null && [ -p ./fifo ]; } || cannot fifos ;;
    devices)
      { mknod ./device c 1 3 2> /dev/null && [ -c ./device ]; } || cannot devices ;;
    acls)
      if command -v setfacl > /dev/null; then setfacl -m u:12345:r ./new 2> /dev/null || cannot acls; fi ;;
    xattrs)
      if command -v setfattr > /dev/null; then
        setfattr -n user.poolferry -v 1 ./new 2> /dev/null || cannot xattrs
        setfattr -n trusted.poolferry -v 1 ./new 2> /dev/null || cannot capabilities
      fi ;;
    fake-super)
      for program in setfattr getfattr xargs sed grep; do
        command -v "$program" > /dev/null || { echo "sh: 1: $program: not found" >&2 && exit 127; }
      done
      # As long as what a file may have there: rsync keeps more than one.
      setfattr -n user.rsync.%stat -v "104755 0,0 4294967294:4294967294" ./new 2> /dev/null || cannot fake-super ;;
    names)
      { true > "./$long"; } 2> /dev/null || cannot long-names
      { true > "./$characters"; } 2> /dev/null || cannot characters
      { true > "./$bytes"; } 2> /dev/null || cannot bytes
      [ ! -e ./NEW ] || cannot upper-case ;;
    times)
      if [ "$time" != 1000000000 ]; then
        cannot any-times
        continue
      fi
      [ "$late" = 4294967999 ] || cannot late-times "$late"
      [ "$early" = -86400 ] || cannot early-times "$early" ;;
  esac
done

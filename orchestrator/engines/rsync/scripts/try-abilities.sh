#!/bin/sh
# shellcheck shell=dash
# Tries what a target can hold, in a folder of its own that is removed again, and prints what it cannot, one ability a line with
# what it has in its place. Arguments: the target's root, the abilities to try.
set -e
root=$1
shift
for program in stat id chown chmod ln mkdir mkfifo mknod rm rmdir touch; do
  command -v "$program" > /dev/null || { echo "sh: 1: $program: not found" >&2 && exit 127; }
done
for program in stat touch mv find; do
  case $("$program" --version 2> /dev/null) in
    *"GNU coreutils"* | *"GNU findutils"*) ;;
    *) echo "not GNU's: $program" >&2 && exit 1 ;;
  esac
done
enter_place "$root" make
umask 077
[ -d .poolferry ] || mkdir .poolferry
enter_room .poolferry
[ -L abilities ] || rm -rf -- ./abilities
mkdir ./abilities
enter_room abilities
leave() {
  cd -P .. && rm -rf -- ./abilities && cd -P .. && rmdir --ignore-fail-on-non-empty ./.poolferry
}
trap leave EXIT
new() {
  rm -rf -- ./new ./other
  : > ./new
}
cannot() {
  # A target that is full can hold nothing: that is another failure, and it has its own words.
  new
  echo "$@"
}
# set_time SECONDS FALLBACK prints the time that a file has then.
set_time() {
  touch -m -d "@$1" ./new 2> /dev/null || touch -m -d "@$2" ./new 2> /dev/null || :
  stat -c %Y ./new
}
long=$(printf %0255d 0)
characters="a:b?|*"
bytes=$(printf "caf\351")
for ability in "$@"; do
  new
  case $ability in
    owners)
      chown 12345:12345 ./new 2> /dev/null || :
      if [ "$(stat -c %u:%g ./new)" != 12345:12345 ]; then
        new
        user=$(stat -c %u ./new)
        groups=$(stat -c %g ./new)
        [ "$user" != "$(id -u)" ] || groups="$groups $(id -G)"
        cannot owners "$user" "$groups"
      fi ;;
    modes)
      mkdir ./other
      chmod 0640 ./new 2> /dev/null || :
      chmod 0751 ./other 2> /dev/null || :
      has="$(stat -c %a ./new) $(stat -c %a ./other)"
      [ "$has" = "640 751" ] || cannot modes "$has" ;;
    hard-links)
      { ln ./new ./other 2> /dev/null && [ ./new -ef ./other ]; } || cannot hard-links ;;
    symlinks)
      { ln -s nowhere ./other 2> /dev/null && [ -L ./other ]; } || cannot symlinks ;;
    fifos)
      { mkfifo ./other 2> /dev/null && [ -p ./other ]; } || cannot fifos ;;
    devices)
      { mknod ./other c 1 3 2> /dev/null && [ -c ./other ]; } || cannot devices ;;
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
      rm -f -- "./$long"
      { true > "./$characters"; } 2> /dev/null || cannot characters
      { true > "./$bytes"; } 2> /dev/null || cannot bytes
      [ ! -e ./NEW ] || cannot upper-case ;;
    times)
      if [ "$(set_time 1000000000 1000000000)" != 1000000000 ]; then
        cannot any-times
        continue
      fi
      has=$(set_time 4294967999 2147483647)
      [ "$has" = 4294967999 ] || cannot late-times "$has"
      has=$(set_time -86400 315532800)
      [ "$has" = -86400 ] || cannot early-times "$has" ;;
  esac
done

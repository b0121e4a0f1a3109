#!/bin/sh
# shellcheck shell=dash
# Prints how many bytes a file may have on the filesystem of a target, as its kernel knows it; nothing where that cannot be told.
# Argument: the target's root.
# The kernel refuses a position in a file that lies behind the limit. Nothing is written: on a filesystem without holes each byte before
# that position would be.
root=$1
enter_place "$root"
enter_room .poolferry
# shellcheck disable=SC2016
perl -e '
  use Fcntl; use integer;
  sysopen(my $file, "target.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK) or exit;
  -f $file or exit;
  my ($fits, $most) = (0, 9223372036854775807);
  while ($fits < $most) {
    my $tried = $most - ($most - $fits) / 2;
    if (defined sysseek($file, $tried, 0)) { $fits = $tried } else { $most = $tried - 1 }
  }
  print $fits;
'

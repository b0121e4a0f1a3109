#!/usr/bin/perl
# Becomes a program for which no link in any folder leads anywhere. Only what Debian's perl-base has.
#
# Arguments: a number, then for each folder that the program works on NUMBER=PATH, then --, the program and its words. The program
# finds "/" as /proc/self/fd/NUMBER of the first, and the folders as /proc/self/fd/NUMBER of theirs. (One that is not there has its
# path below that "/" in the program's words instead.) All else it finds by its usual
# path, and there links lead on: its libraries, what ssh reads. POOLFERRY_ROOT in its environment is the path of that "/".
#
# The mounts are this process's own, and gone with it; what is mounted or unmounted elsewhere meanwhile is so here, too. They are
# copied whole, so that names in one filesystem can be linked and renamed as ever. Where the kernel does not let us do that (another
# user than root, a container without rights, before Linux 5.14), the folders are opened by their paths, and POOLFERRY_ROOT is not set;
# root is told so by one line of error output.
# Without `use warnings`: loading it takes longer than all else here.
use strict;

# Numbers of system calls: unshare and umount2 by machine, as ELF names it; newer ones are the same everywhere.
my %OF_MACHINE = (
    62 => [272, 166], 183 => [97, 39], 243 => [97, 39], 258 => [97, 39], 3 => [310, 52], 40 => [337, 52], 21 => [282, 52],
    22 => [303, 52],
);
my ($OPEN_TREE, $MOVE_MOUNT, $MOUNT_SETATTR) = (428, 429, 442);
my $NEW_MOUNTS     = 0x20000;
my $HERE           = -100;                       # AT_FDCWD
my $RECURSIVE      = 0x8000;
my $EMPTY_PATH     = 0x1000;
my $CLONE          = 1;
my $FROM_ITSELF    = 4;                          # MOVE_MOUNT_F_EMPTY_PATH
my $DETACHED       = 2;                          # MNT_DETACH
my $SLAVE          = pack "Q4", 0, 0, 1 << 19, 0;
my $FOLLOW_NO_LINK = pack "Q4", 0x200000, 0, 0, 0;
my $PATH_ONLY      = 010000000;                  # O_PATH
my $TO_NUMBER      = 0;                          # F_DUPFD
my ($NOT_THERE, $IS_A_LINK) = (2, 40);           # ENOENT, ELOOP
my $MOST_LINKS     = 40;

$^F = 1 << 16;                                   # the program inherits what is opened here
my @kept;
my $number = shift;
my $root   = shut_links_out();
if (defined $root) {
    open(my $at, "<&=", $root) or die "$!\n";
    $root = $ENV{POOLFERRY_ROOT} = keep($at, $number);
}
elsif ($> == 0) { syswrite STDERR, "without-links.pl: links lead on ($number)\n" }
while (defined(my $folder = shift)) {
    last if $folder eq "--";
    my ($own_number, $path) = $folder =~ m{^(\d+)=(/.*)}s or die "not a folder: $folder\n";
    if (my $at = enter($path)) { keep($at, $own_number) }
    else {
        # It is for the program to make, or to tell that it cannot be entered.
        my ($name, $place) = ("/proc/self/fd/$own_number", (defined $root ? $root : "") . $path);
        s{^((?:--[a-z-]+=)?)\Q$name\E(?=/|$)}{$1$place} for @ARGV;
    }
}
exec { $ARGV[0] } @ARGV or do { print STDERR "$ARGV[0]: $!\n"; exit($! == $NOT_THERE ? 127 : 126) };

# Returns a descriptor of a second "/", in which links lead nowhere; it lies over the first, which all else goes on to use.
sub shut_links_out {
    delete $ENV{POOLFERRY_ROOT};
    my ($self, $head);
    open($self, "<", "/proc/self/exe") && read($self, $head, 20) == 20 or return;
    my $numbers = $OF_MACHINE{ unpack "x18 S", $head } or return;
    my ($slash, $itself) = ("/", "");
    # What is mounted when somebody looks (a snapshot below .zfs, autofs) is to be here before the mounts are copied.
    for (trees()) { stat "$_/." }
    return if !root_is_a_mount();                # a chroot: it would get copies of all mounts, and could do no more with them
    return if syscall($numbers->[0], $NEW_MOUNTS) != 0;
    return if syscall($MOUNT_SETATTR, $HERE, $slash, $RECURSIVE, $SLAVE, length $SLAVE) != 0;
    let_go_of_disks($numbers->[1]);
    my $tree = syscall($OPEN_TREE, $HERE, $slash, $CLONE | $RECURSIVE);
    return if $tree < 0;
    return if syscall($MOUNT_SETATTR, $tree, $itself, $EMPTY_PATH | $RECURSIVE, $FOLLOW_NO_LINK, length $FOLLOW_NO_LINK) != 0;
    return if syscall($MOVE_MOUNT, $tree, $itself, $HERE, $slash, $FROM_ITSELF) != 0;
    return $tree;
}

sub root_is_a_mount {
    open(my $mounts, "<", "/proc/self/mountinfo") or return 0;
    while (<$mounts>) { return 1 if (split / /)[4] eq "/" }
    return 0;
}

sub trees {
    my @trees;
    for (@ARGV) {
        last if $_ eq "--";
        push @trees, m{^\d+=(/.*)}s ? $1 : ();
    }
    return @trees;
}

# Unmounts here the disks that the program does not work on, where an unmount elsewhere does not come through (no systemd): else who
# lets go of another disk meanwhile would find it busy. None that belongs to the system or to users' homes, where ssh and libraries
# read, and none that a word names: a list, a key.
sub let_go_of_disks {
    my ($umount) = @_;
    my @trees = trees();
    open(my $mounts, "<", "/proc/self/mountinfo") or return;
    my @disks;
    while (<$mounts>) {
        my (undef, undef, undef, undef, $at, undef, @more) = split / /;
        my ($fields, $kind, $device) = join(" ", @more) =~ /^(.*?)- (\S+) (\S+)/ or next;
        return if $at eq "/" && $fields =~ /master:/;
        next if $at =~ m{^/(?:$|(?:usr|etc|var|home|root|opt|boot|nix|lib\w*|s?bin)(?:/|$))} || $kind ne "zfs" && $device !~ m{^/dev/};
        $at =~ s/\\([0-7]{3})/chr oct $1/ge;
        next if grep { index("$_/", "$at/") >= 0 } @ARGV;
        push @disks, $at if !grep { index("$at/", s{/*$}{/}r) == 0 } @trees;
    }
    for my $disk (reverse @disks) { syscall($umount, $disk, $DETACHED) }
}

# Gives a descriptor its number, and returns its path.
sub keep {
    my ($at, $wanted) = @_;
    my $got = fcntl($at, $TO_NUMBER, 0 + $wanted);
    defined $got && $got == $wanted or die "descriptor $wanted is taken\n";
    push @kept, $at;
    return "/proc/self/fd/$wanted";
}

# Returns the open folder. A link on the way to it counts only when root or we made it, where nobody else can exchange it.
sub enter {
    my ($path) = @_;
    return open_folder($path) if !defined $root;
    if (my $at = open_folder("$root$path")) { return $at }
    my $real = $! == $IS_A_LINK ? without_our_links($path) : undef;
    return defined $real ? open_folder("$root$real") : undef;
}

sub open_folder {
    my ($path) = @_;
    my $at;
    return sysopen($at, "$path/.", $PATH_ONLY) ? $at : undef;
}

# Returns the path that a path leads to over such links alone; nothing over others.
sub without_our_links {
    my ($left) = @_;
    my ($here, $links) = ("", 0);
    while ($left =~ s{^/*([^/]+)}{}) {
        my $part = $1;
        next if $part eq ".";
        if ($part eq "..") { $here =~ s{/[^/]*$}{}; next }
        my $owner = (lstat "$here/$part")[4];
        if (defined $owner && -l _) {
            return if !ours($owner) || !has_our_names("$here/") || ++$links > $MOST_LINKS;
            my $goal = readlink "$here/$part";
            return if !defined $goal;
            $here = "" if $goal =~ m{^/};
            $left = "$goal/$left";
            next;
        }
        $here .= "/$part";
    }
    return "$here/";
}

sub ours { return $_[0] == 0 || $_[0] == $> }

# Tells whether only root and we can exchange names in a folder; with the sticky bit all rename only their own.
sub has_our_names {
    my ($mode, $owner, $group) = (stat $_[0])[2, 4, 5];
    return 0 if !defined $mode || !ours($owner);
    return 1 if $mode & 01000;
    return 0 if $mode & 0002;
    return !($mode & 0020) || $group == 0 || $group == (split " ", $))[0];
}

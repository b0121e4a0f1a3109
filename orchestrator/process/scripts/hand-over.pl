#!/usr/bin/perl
# Answers one request of a gate as quickly as can be, and ends as its answer ended. A question that the key asked before is answered
# by what is recorded of it (process/recorded_answers.py). Any other request is handed over to the process that an earlier one left behind
# (process/handover.py), which answers it, or says what this becomes. Where neither is there, this becomes the program. Only what
# Debian's perl-base has. Arguments: the program, `gate`, the gate's name, options.
# Why not Python: its start costs five times what all this does. Why no module, no `use strict` (`make check` has it), no `use warnings`:
# loading them costs more still.
# The line of a key reads it by `do`, and becomes the program where this file is not there any more, as after a downgrade.

# The numbers of sendmsg, prctl and memfd_create by machine, as ELF names it, of those with 64 bits; those of Landlock are the same everywhere.
my %OF_MACHINE = (62 => [46, 157, 319], 183 => [211, 167, 279], 243 => [211, 167, 279], 258 => [211, 167, 279], 21 => [341, 171, 360],
    22 => [370, 172, 350]);
my ($CREATE_RULESET, $ADD_RULE, $RESTRICT_SELF, $NO_NEW_PRIVS) = (444, 445, 446, 38);
my ($PATH_ONLY, $CLOSED_LATER, $UNIX, $PACKETS, $DATAGRAMS, $SOCKET, $PEER, $DESCRIPTORS) = (010000000, 02000000, 1, 5, 2, 1, 17, 1);
my ($READ_WRITE, $CREATE, $SET_LOCK, $WRITE_LOCK, $AUTH_INFO, $NOT_THERE, $ALONE) = (2, 0100, 37, 1, 38, 2, 2);
my $LOST = 255;                                  # exit status, as ssh's own for a connection that is lost
my $HOLDS = 86400;                               # seconds for which what is recorded of a question holds
my $LITTLE = 256 << 10;                          # bytes of a stream that are gathered, as process/handover.py has it
my ($SILENCE, $LONGEST) = (5, 15);               # seconds without a byte, and in all, after which what came goes on by itself
my $LONGEST_ANSWER = 1 << 18;                    # bytes of what is said

# What admits and answers, of the package, as process/handover.py has it. A "/" at the end: the modules there.
my @ANSWERING = ("__init__.py", "app/gate.py", "config/", "domain/gate.py", "domain/names.py", "domain/place.py", "domain/plan.py",
    "engines/zfs/commands/", "engines/zfs/scripts", "gate/", "process/", "process/scripts", "trees/");

my ($sendmsg, $prctl, $memfd_create) = numbers();
my $folder = state_folder();
my ($line, $asker) = map { defined $_ ? $_ : "" } @ENV{"SSH_ORIGINAL_COMMAND", "SSH_CONNECTION"};
$asker =~ s/ .*//s;
my $server;
if (defined $sendmsg && defined $folder && $ARGV[1] eq "gate" && $ARGV[2] =~ m{^[^/]+$}s) {
    my $package = __FILE__ =~ s{process/scripts/[^/]*$}{}r;
    my @seen = map { mark($_) } $ARGV[0], map { $package . $_ } @ANSWERING;
    my $identity = join "\1", @ARGV[1 .. $#ARGV], @seen;
    answer_again($identity);
    $server = asked($identity);
}
if (!defined $server) { exec { $ARGV[0] } @ARGV or do { print STDERR "$ARGV[0]: $!\n"; exit 127 } }
# It is answered by now, whatever comes, and must not be once more.
my $said = "";
eval {
    # They end where the request ends.
    open(STDIN, "<", "/dev/null");
    open(STDOUT, ">", "/dev/null");
    recv($server, $said, 8, 0);
};
exit(defined $said && $said =~ /^\d+$/ ? $said : $LOST);

# Returns what changes with a file, or with any module of a folder.
sub mark {
    my ($path) = @_;
    my ($number, @sums) = (stat $path)[1, 7, 9, 10];
    return "" if !defined $number;
    my $count = 1;
    if ($path =~ m{/$}s) {
        opendir(my $modules, $path) or return "";
        ($count, @sums) = (0, 0, 0, 0);
        for (readdir $modules) {
            next if !/\.py$/s;
            my ($size, $content, $state) = (stat $path . $_)[7, 9, 10];
            ($count, @sums) = ($count + 1, $sums[0] + $size, $sums[1] + $content, $sums[2] + $state);
        }
    }
    return "$number $count @sums";
}

# Returns the connection over which the end of the request comes; nothing where nobody takes it. It does not return where this becomes the answer.
sub asked {
    my ($identity) = @_;
    sysopen(my $state, $folder, $PATH_ONLY | $CLOSED_LATER) or return;
    my $to;
    {
        local $^F = 1 << 20;    # it alone stays open: where this becomes the answer, its end is the end of that
        socket($to, $UNIX, $PACKETS, 0) or return;
    }
    my $address = pack "S a*", $UNIX, "/proc/self/fd/" . fileno($state) . "/gate-$ARGV[2].session\0";
    return if length $address > 110 || !connect($to, $address);
    return if (unpack "l3", getsockopt($to, $SOCKET, $PEER) || "")[1] != $>;
    hand($to, join("\0", $identity, $asker, $line, "becomes"), 0, 1, 2) or return;
    my $said = hear($to);
    if ($said eq "gather") {
        my ($held, $whole) = gathered();
        # What was read is here alone: where nobody takes it, it is lost.
        exit $LOST if !defined $held || !hand($to, $whole ? "whole" : "part", fileno $held);
        $said = hear($to);
        exit $LOST if $said !~ /^(?:taken$|become)/s;
        open(STDIN, "<&", $held) && sysseek(STDIN, 0, 0) or exit $LOST;
    }
    become(eval { unpack "(N/a*)*", substr $said, 6 }) if $said =~ /^become/s;
    return $said eq "taken" ? $to : undef;
}

# Hands words and open files over; returns whether that was taken.
sub hand {
    my ($to, $words, @files) = @_;
    my $piece = pack "P Q", $words, length $words;
    my $size = 16 + 4 * @files;
    my $passed = pack "Q l l l* x![8]", $size, $SOCKET, $DESCRIPTORS, @files;
    my $message = pack "Q L x4 P Q P Q l x4", 0, 0, $piece, 1, $passed, length $passed, 0;
    return syscall($sendmsg, fileno($to), $message, 0) >= 0;
}

# Returns what is said; nothing where nobody is there any more.
sub hear {
    my ($from) = @_;
    my $said = "";
    recv($from, $said, $LONGEST_ANSWER, 0);
    return defined $said ? $said : "";
}

# Returns a file in memory with the beginning of the input, and whether that is all; nothing where it cannot be made.
sub gathered {
    my $name = "input";
    my $number = syscall($memfd_create, $name, 1);
    return if $number < 0 || !open(my $held, "+<&=", $number);
    my ($size, $until) = (0, time + $LONGEST);
    while ($size < $LITTLE) {
        my ($ready, $piece) = ("", "");
        vec($ready, 0, 1) = 1;
        return ($held, 0) if time > $until || !select($ready, undef, undef, $SILENCE);
        my $came = sysread(STDIN, $piece, $LITTLE - $size);
        return if !defined $came;
        return ($held, 1) if !$came;
        for (my $at = 0; $at < $came;) { $at += syswrite($held, $piece, $came - $at, $at) || return }
        $size += $came;
    }
    return ($held, 0);
}

# Becomes what answers a question that the key asked before. Returns where nothing is recorded of it, or anything is not as it was.
sub answer_again {
    my ($identity) = @_;
    my ($file, $recorded);
    my $path = "$folder/gate-$ARGV[2].asked";
    return if $asker !~ /^[0-9A-Za-z.:%]{1,64}$/s || !is_ours($path) || !-f _ || -s _ > 1 << 20;
    open($file, "<", $path) && read($file, $recorded, 1 << 20) or return;
    my $wanted = pack "(N/a*)*", $identity, $line;
    for my $entry (eval { unpack "(N/a*)*", $recorded }) {
        next if substr($entry, 0, length $wanted) ne $wanted;
        my (undef, undef, $when, @rest) = eval { unpack "(N/a*)*", $entry };
        next if !defined $when || $when !~ /^[0-9]+$/ || @rest != 10 || $rest[9] ne "end";
        my $age = time - $when;
        answer_by(@rest) if $age >= 0 && $age < $HOLDS;
    }
}

# Becomes a recorded answer, after what is checked for each request.
sub answer_by {
    my ($gate, $seen, @answer) = @_;
    my $above = $gate;
    while ($above =~ s{/[^/]*$}{}s) { return if !is_ours(length $above ? $above : "/") || !-d _ }
    return if !is_ours($gate) || join(" ", (lstat $gate)[0 .. 5, 7, 9, 10]) ne $seen;
    become(@answer);
}

# Becomes an answer, as process/confine.py's `become_for_datasets` does. Returns where anything is not as it was.
sub become {
    my ($most, $version, $ruleset, $rules, $environment, $argv, $shown, $end) = @_;
    return if !defined $end || $end ne "end";
    my $landlock = syscall($CREATE_RULESET, 0, 0, 1);
    return if ($landlock < 1 ? 0 : $landlock) != $version;
    my $shut = confinement($ruleset, $rules);
    return if !defined $shut;
    my $places = place($most);
    return if !defined $places;
    note($shown);

    # From here on nothing else can answer any more.
    $SIG{CHLD} = "DEFAULT";
    umask(umask() | 022);
    fail("folder") if !chdir "/";
    fail("Landlock") if $shut && (syscall($prctl, $NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall($RESTRICT_SELF, $shut, 0) < 0);
    my @words = unpack "(N/a*)*", $argv;
    %ENV = unpack "(N/a*)*", $environment;
    exec { $words[0] } @words or fail($words[0]);
}

# Ends, as what was to become the answer cannot; the argument says at what.
sub fail {
    print STDERR "poolferry gate $ARGV[2]: $_[0]: $!\n";
    exit 127;
}

# Returns whether nobody but us and root can change what is at a path, as far as this can be seen at once; others than the file below
# are asked for in their folders.
sub is_ours {
    my ($mode, $owner) = (lstat $_[0])[2, 4];
    return defined $mode && !-l _ && ($owner == 0 || $owner == $>) && (!($mode & 022) || (-d _ && -k _));
}

# Returns the number of the ruleset's descriptor; 0: this kernel has none, nothing: it cannot be made.
sub confinement {
    my ($ruleset, $rules) = @_;
    return 0 if $ruleset eq "";
    my $made = syscall($CREATE_RULESET, $ruleset, length $ruleset, 0);
    return if $made < 0;
    my @left = unpack "(N/a*)*", $rules;
    while (my ($path, $in_folders, $of_files) = splice @left, 0, 3) {
        my $at;
        if (!sysopen($at, $path, $PATH_ONLY | $CLOSED_LATER)) {
            next if $! == $NOT_THERE;
            return;
        }
        my $rule = pack "a8 l", -d $at ? $in_folders : $of_files, fileno $at;
        return if syscall($ADD_RULE, $made, 1, $rule, 0) < 0;
    }
    return $made;
}

# Returns the open file in which one of the gate's places is taken until this process, and what it becomes, have ended; nothing: there
# is none. What a stream counted that had it before, is forgotten: as process/input_limit.py's `place_taker` does.
sub place {
    my ($most) = @_;
    my $counters;
    if (sysopen($counters, "$folder/gate-$ARGV[2].bytes", $READ_WRITE)) { flock($counters, $ALONE) or return }
    else                                                                { undef $counters }
    local $^F = 1 << 20;    # it stays open
    sysopen(my $places, "$folder/gate-$ARGV[2].places", $READ_WRITE | $CREATE, 0600) or return;
    for my $place (0 .. $most - 1) {
        my $lock = pack "s s x4 q q l x4", $WRITE_LOCK, 0, $place, 1, 0;
        next if !fcntl($places, $SET_LOCK, $lock);
        if (defined $counters) { sysseek($counters, 8 + 24 * $place, 0) && syswrite($counters, "\0" x 24) == 24 or return }
        return $places;
    }
    return;
}

# Notes a request in the system's journal, as syslog(3) does.
sub note {
    my ($shown) = @_;
    my ($second, $minute, $hour, $day, $month) = localtime;
    my $name = (qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec))[$month];
    my $when = sprintf "%s %2d %02d:%02d:%02d", $name, $day, $hour, $minute, $second;
    socket(my $to, $UNIX, $DATAGRAMS, 0) or return;
    connect($to, pack "S a*", $UNIX, "/dev/log\0") or return;
    send $to, "<$AUTH_INFO>$when poolferry-gate[$$]: $ARGV[2]: $asker: $shown", 0;
}

# Returns the numbers of this machine's system calls; nothing where they are not known.
sub numbers {
    my ($self, $head);
    open($self, "<", "/proc/self/exe") && read($self, $head, 20) == 20 && ord(substr $head, 4) == 2 or return;
    return @{ $OF_MACHINE{ unpack "x18 S", $head } || [] };
}

# Returns the state directory that the words name, or the usual one; nothing where it takes more to find it, or the configuration.
sub state_folder {
    return if !grep({ $_ eq "--config" } @ARGV) && (exists $ENV{POOLFERRY_CONFIG} || exists $ENV{XDG_CONFIG_HOME});
    for my $at (0 .. $#ARGV) { return $ARGV[$at + 1] if $ARGV[$at] eq "--state" }
    return if exists $ENV{POOLFERRY_STATE} || exists $ENV{XDG_STATE_HOME};
    return $> ? (defined $ENV{HOME} ? $ENV{HOME} : "") . "/.local/state/poolferry" : "/var/lib/poolferry";
}

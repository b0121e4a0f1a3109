#!/usr/bin/perl
# Makes one connection between two machines, on which each end has proved itself to the other before a byte of the stream moves;
# then runs a program with the socket as its stdin (listen) or stdout (connect). Only what Debian's perl-base has.
#
# The connecting end takes a port of its own first, and says to the listening end, through ssh, two new secrets and that port.
# The listening end talks to nobody but the sender's address and that port, which nobody else can have meanwhile: so nobody else
# hears its secret, not even to pass it on. It says its secret first; only then the connecting end says its own, and sends.
#
# Arguments: connect ADDRESS PORT PROGRAM...; descriptor 3 leads to the listening end's stdin.
#            listen SENDER ADDRESS PORT PATIENCE PROGRAM...; says its pid, and "met" before what the program says.
use strict;
use warnings;
use Errno qw(ECONNABORTED EINPROGRESS EINTR ETIMEDOUT EWOULDBLOCK);
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use Socket qw(AF_INET6 AI_NUMERICHOST AI_NUMERICSERV AI_PASSIVE IPPROTO_IPV6 IPV6_V6ONLY NI_NUMERICHOST NI_NUMERICSERV
    SOCK_STREAM SOL_SOCKET SO_ERROR SO_RCVLOWAT SO_REUSEADDR getaddrinfo getnameinfo);

my $REACH_SECONDS = 30;    # ssh may need so long until the other end listens
my $PROOF_SECONDS = 10;    # who is there answers at once
my $BLOCK         = 128 << 10;
my $MOST_NAMED    = 3;     # strangers that are told by their addresses

my ($mode, @arguments) = @ARGV;
$mode eq "connect" ? connect_end(@arguments) : listen_end(@arguments);

sub connect_end {
    my ($address, $port, @program) = @_;
    my ($family, $there) = resolve($address, $port);
    my $name = show($there);
    socket(my $line, $family, SOCK_STREAM, 0) or fail("cannot make a socket: $!");
    my $own_port = take_port($line, $family == AF_INET6 ? "::" : "0.0.0.0");

    my ($receiver_secret, $sender_secret) = (make_secret(), make_secret());
    open(my $far, ">&=", 3) or fail("cannot reach the other end: $!");
    say_all($far, "$receiver_secret $sender_secret $own_port\n");
    reach($line, $there, $name, $far);
    close $far;

    my $said = hear($line, length $receiver_secret);
    if (!same($said, $receiver_secret)) {
        fail(length $said
            ? "someone else listens on $name in place of our receiver; nothing was sent"
            : "who listens on $name does not prove to be our receiver; nothing was sent");
    }
    set_blocking($line, 1);
    say_all($line, $sender_secret);
    open(STDOUT, ">&", $line) or fail("cannot hand over the connection: $!");
    run(@program);
}

sub listen_end {
    my ($sender, $address, $port, $patience, @program) = @_;
    my $words = read_line();
    my ($receiver_secret, $sender_secret, $sender_port) = $words =~ /\A([0-9a-f]{32}) ([0-9a-f]{32}) ([0-9]+)\z/
        or exit 1;
    say_all(\*STDOUT, "$$\n");
    my $door = open_door($address, $port);
    my (undef, $expected) = resolve($sender, $sender_port);
    my $line = await($door, $expected, $patience);
    close $door;

    say_all($line, $receiver_secret);
    set_blocking($line, 0);
    same(hear($line, length $sender_secret), $sender_secret) or fail("the sender left before it proved itself");
    set_blocking($line, 1);
    # A read returns a whole block, or what comes before the end, as in mbuffer's own network mode: fewer and larger steps.
    setsockopt($line, SOL_SOCKET, SO_RCVLOWAT, $BLOCK);
    say_all(\*STDOUT, "met\n");
    open(STDIN, "<&", $line) or fail("cannot hand over the connection: $!");
    run(@program);
}

# Takes a port by its number: one that the kernel chose would be given back when nobody listens yet.
sub take_port {
    my ($line, $anywhere) = @_;
    for (1 .. 100) {
        my $port = 32768 + int rand 28232;
        my (undef, $own) = resolve($anywhere, $port);
        return $port if bind($line, $own);
    }
    return fail("cannot take a port to send from: $!");
}

# Connects, as soon as somebody listens. The other end hears an empty line now and then: whose reader has left ends here.
sub reach {
    my ($line, $there, $name, $far) = @_;
    my ($until, $pause) = (time + $REACH_SECONDS, 0.01);
    set_blocking($line, 0);
    until (connect($line, $there)) {
        next if $! == ECONNABORTED;    # only now the socket is rid of the last attempt
        if ($! == EINPROGRESS) {
            say_all($far, "\n") until is_ready($line, 1, 0.5) or time > $until;
            $! = is_ready($line, 1, 0) ? unpack("i", getsockopt($line, SOL_SOCKET, SO_ERROR)) : ETIMEDOUT;
            return if $! == 0;
        }
        fail("unable to connect to $name: $!") if time > $until;
        say_all($far, "\n");
        select(undef, undef, undef, $pause);
        $pause = 0.2 if ($pause *= 2) > 0.2;
    }
    return;
}

sub open_door {
    my ($address, $port) = @_;
    my ($family, $here) = resolve($address, $port);
    socket(my $door, $family, SOCK_STREAM, 0) or fail("cannot make a socket: $!");
    # Past connections of the port do no harm; who listens on it already is not pushed aside by this.
    setsockopt($door, SOL_SOCKET, SO_REUSEADDR, 1);
    setsockopt($door, IPPROTO_IPV6, IPV6_V6ONLY, 1) if $family == AF_INET6;
    bind($door, $here) && listen($door, 128) or fail("could not bind to socket for " . show($here) . ": $!");
    set_blocking($door, 0);
    return $door;
}

# Returns the connection of the one that is expected. Everybody else is turned away at once, without a word, and keeps nobody
# waiting; so there is no limit of them.
sub await {
    my ($door, $expected, $patience) = @_;
    my ($expected_address) = numbers($expected);
    my $until = time + $patience;
    my ($strangers, @named) = (0);
    my $give_up = sub { fail(@named, "no sender has connected") };
    local $SIG{TERM} = $give_up;
    while ((my $left = $until - time) > 0) {
        is_ready($door, 0, $left) or next;
        my $peer = accept(my $line, $door) or next;
        if (show($peer) eq show($expected)) {
            print STDERR "strangers that were turned away: $strangers\n" if $strangers;
            return $line;
        }
        $strangers++;
        my ($address) = numbers($peer);
        push @named, $address eq $expected_address
            ? "a stranger connected from " . show($peer) . " in place of the sender"
            : "rejected connection from " . show($peer)
            if @named < $MOST_NAMED;
    }
    $give_up->();
    return;
}

# Returns what the other end says, so many bytes at most; fewer if it leaves, or takes too long.
sub hear {
    my ($line, $length) = @_;
    my ($said, $until) = ("", time + $PROOF_SECONDS);
    while (length $said < $length and (my $left = $until - time) > 0) {
        is_ready($line, 0, $left) or next;
        my $read = sysread($line, $said, $length - length $said, length $said);
        next if !defined $read && ($! == EINTR || $! == EWOULDBLOCK);
        last if !$read;
    }
    return $said;
}

# Compares all bytes, however early they differ.
sub same {
    my ($said, $secret) = @_;
    return length $said == length $secret && ($said ^ $secret) =~ tr/\0//c == 0;
}

sub make_secret {
    open(my $random, "<:raw", "/dev/urandom") or fail("cannot read /dev/urandom: $!");
    (sysread($random, my $bytes, 16) || 0) == 16 or fail("cannot read /dev/urandom: $!");
    return unpack("H*", $bytes);
}

# Byte by byte, as what follows the line is for somebody else.
sub read_line {
    my ($line, $byte) = ("", "");
    while ($byte ne "\n" and length $line < 200) {
        $line .= $byte;
        sysread(STDIN, $byte, 1) or last;
    }
    return $line;
}

sub say_all {
    my ($handle, $text) = @_;
    my $written = syswrite($handle, $text);
    fail("the other end has left: $!") if !defined $written || $written < length $text;
    return;
}

sub is_ready {
    my ($handle, $writable, $seconds) = @_;
    my $bits = "";
    vec($bits, fileno $handle, 1) = 1;
    return select($writable ? undef : $bits, $writable ? $bits : undef, undef, $seconds) > 0;
}

sub set_blocking {
    my ($handle, $blocking) = @_;
    my $flags = fcntl($handle, F_GETFL, 0) or fail("cannot set up a socket: $!");
    fcntl($handle, F_SETFL, $blocking ? $flags & ~O_NONBLOCK : $flags | O_NONBLOCK) or fail("cannot set up a socket: $!");
    return;
}

sub resolve {
    my ($address, $port) = @_;
    my %numeric = (flags => AI_NUMERICHOST | AI_NUMERICSERV, socktype => SOCK_STREAM);
    my ($error, $found) = getaddrinfo($address, $port, \%numeric);
    fail("$address is no address: $error") if $error;
    return ($found->{family}, $found->{addr});
}

sub numbers {
    my ($packed) = @_;
    my ($error, $address, $port) = getnameinfo($packed, NI_NUMERICHOST | NI_NUMERICSERV);
    fail("an address cannot be shown: $error") if $error;
    return ($address, $port);
}

sub show {
    my ($address, $port) = numbers(@_);
    return $address =~ /:/ ? "[$address]:$port" : "$address:$port";
}

sub run {
    my (@program) = @_;
    exec { $program[0] } @program or print STDERR "$program[0]: $!\n";
    exit 127;
}

sub fail {
    print STDERR "$_\n" for @_;
    exit 1;
}

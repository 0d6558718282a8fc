#!/usr/bin/perl
# Books amounts into a file: a persistent handler in Perl.  A message is a JSON
# object with an account and an amount: {"id": 7, "account": "alice", "amount": 12.5}.
#
#	queue "ledger" {
#	    command     = {"/usr/local/bin/ledger.pl"}
#	    user        = "ledger"
#	    env         = {"LEDGER=/var/lib/ledger/book"}
#	    mode        = "persistent"
#	    concurrency = 2
#	    pipeline    = 16
#	}
#
# Standard output is for answers only: "print STDERR" for all else, and programs
# that it runs need ">&2 </dev/null".

use strict;
use warnings;
use IO::Handle;
use JSON::PP;

binmode STDIN;
STDOUT->autoflush(1);		# or answers would wait in a buffer

# Do slow things (connections, large modules) here, once.
open my $ledger, '>>', $ENV{LEDGER} or die "$ENV{LEDGER}: $!\n";
$ledger->autoflush(1);

# Dies if a retry may help.  Returns the reason if no retry can help.
sub book {
	my ($id, $message) = @_;
	my $order = eval { JSON::PP->new->utf8->decode($message) };
	return 'not JSON' unless defined $order;
	return 'not an order' unless ref $order eq 'HASH' && defined $order->{account};
	return 'no amount' unless ($order->{amount} // '') =~ /^-?[0-9.]+$/;
	# One write for one line: lines of several processes do not mix.
	print {$ledger} sprintf("%s %s %.2f\n", $id, $order->{account}, $order->{amount})
	    or die "$ENV{LEDGER}: $!\n";
	return;
}

# A reason is one line.
sub answer {
	my ($number, $verdict, $reason) = @_;
	$reason =~ s/\s+/ /g;
	print "$number $verdict ", substr($reason, 0, 500), "\n";
}

while (defined(my $header = <STDIN>)) {
	chomp $header;
	my ($number, $attempt, $length, $id) = split / /, $header, 4;
	# The message and the newline after it.
	last if read(STDIN, my $message, $length + 1) != $length + 1;
	chop $message;
	my $never = eval { book($id, $message) };
	if ($@) {
		answer($number, 'retry -', $@);
	} elsif (defined $never) {
		answer($number, 'dead', $never);
	} else {
		print "$number ok\n";
	}
}

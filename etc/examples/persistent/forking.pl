#!/usr/bin/perl
# Runs a Perl script once for each message, each time in a new process, without starting
# the interpreter again: a persistent handler that loads modules once and forks.
#
#	queue "orders" {
#	    command     = {"/usr/local/bin/forking.pl", "/usr/local/bin/ship-order.pl",
#	                   "JSON::PP", "DBI"}          # the script, and modules to load
#	    user        = "orders"
#	    mode        = "persistent"
#	    concurrency = 4
#	}
#
# The script is one for mode "exec", unchanged unless it reads DATA: the message is on
# standard input, RQD_ID and RQD_ATTEMPT are in the environment, and the exit status
# decides.  Status 65 makes a dead letter.  Reload rqd after a change of the script.
#
# The modules must not start threads or open connections: all processes would share them.
# Processes that the script leaves behind run until the queue's process ends.

# Runs the text of a script.  It comes first: the text must not see the variables below.
sub run { eval $_[0]; die $@ if $@; exit }

use strict;
use warnings;
use IO::Handle;

my $dead = 65;		# the script's status for a message that can never succeed

# Gives this process what a handler in mode "exec" has.
sub set_message {
	my ($attempt, $id, $message) = @_;
	@ENV{'RQD_ATTEMPT', 'RQD_ID'} = ($attempt, $id);
	open my $file, '+>', undef or die "cannot make a file: $!\n";
	print {$file} $message and seek $file, 0, 0 or die "cannot write a file: $!\n";
	open STDIN, '<&', $file or die "cannot open a file: $!\n";
	srand;		# or all processes would repeat the same random numbers
}

# The answer for a status as in $?.
sub verdict {
	my ($status) = @_;
	return 'ok' if $status == 0;
	return 'retry killed by signal ' . ($status & 127) if $status & 127;
	return ($status >> 8 == $dead ? 'dead' : 'retry') . ' exit status ' . ($status >> 8);
}

# The pipes to rqd move to other descriptors, which programs do not inherit.  So nothing
# else can read a message, and what is printed goes to the log.
open my $requests, '<&', \*STDIN or die "$!\n";
open my $answers, '>&', \*STDOUT or die "$!\n";
open STDOUT, '>&', \*STDERR or die "$!\n";
open STDIN, '<', '/dev/null' or die "$!\n";
binmode $requests;
$answers->autoflush(1);

$0 = shift @ARGV;
eval "require $_; 1" or die $@ for splice @ARGV;
open my $file, '<', $0 or die "$0: $!\n";
my $script = join '', "package main;\n#line 1 \"$0\"\n", <$file>;
close $file;

while (defined(my $header = <$requests>)) {
	chomp $header;
	my ($number, $attempt, $length, $id) = split / /, $header, 4;
	# The message and the newline after it; less if the daemon has gone.
	last if read($requests, my $message, $length + 1) != $length + 1;
	chop $message;
	my $pid = fork // die "cannot fork: $!\n";
	if ($pid == 0) {
		close $requests;
		close $answers;
		set_message($attempt, $id, $message);
		run($script);
	}
	waitpid $pid, 0;
	# A command was not found: rqd suspends the queue.
	exit $? >> 8 if $? == 126 << 8 || $? == 127 << 8;
	print {$answers} "$number ", verdict($?), "\n";
}

#!/bin/sh
# The examples that fork for each message, in the daemon: a script for mode "exec" has a
# process of its own for each message, and its end decides as in that mode.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
cp "$SRCDIR"/etc/examples/persistent/forking.* "$T"
chmod 755 "$T"/forking.*

# The same script in each language.  It notes in BOOK.got: the id, the attempt, its pid, its
# parent, the length and the sum of the message.  In BOOK.open: what
# it has open above descriptor 2, but for Ruby's own eventfds.  "RUN COMMAND" as message runs a shell in its place.
cat >"$T/script.py" <<'H'
import hashlib, os, pickle, sys
done = script = True	# names of forking.py
class Order: pass
pickle.loads(pickle.dumps(Order()))
message = sys.stdin.buffer.read()
with open(os.environ["BOOK"] + ".got", "a") as f:
    print(os.environ["RQD_ID"], os.environ["RQD_ATTEMPT"], os.getpid(), os.getppid(),
          len(message), hashlib.sha256(message).hexdigest(), file=f)
for d in range(3, 64):
    if os.path.exists(f"/proc/self/fd/{d}") or os.path.islink(f"/proc/self/fd/{d}"):
        with open(os.environ["BOOK"] + ".open", "a") as f:
            print(d, os.readlink(f"/proc/self/fd/{d}"), file=f)
print("42 ok")
if message.startswith(b"RUN "):
    os.execv("/bin/sh", ["sh", "-c", message[4:]])
if message.startswith(b"EXIT "):
    sys.exit(int(message[5:]))
if message == b"RAISE":
    raise ValueError("a wrong value")
H
cat >"$T/script.rb" <<'H'
require 'digest'
message = STDIN.binmode.read
File.open(ENV['BOOK'] + '.got', 'a') do |f|
  f.puts [ENV['RQD_ID'], ENV['RQD_ATTEMPT'], Process.pid, Process.ppid,
          message.bytesize, Digest::SHA256.hexdigest(message)].join(' ')
end
(3..63).each do |d|
  next unless File.symlink?("/proc/self/fd/#{d}")
  to = File.readlink("/proc/self/fd/#{d}")
  File.write(ENV['BOOK'] + '.open', "#{d} #{to}\n", mode: 'a') unless to.start_with?('anon_inode:')
end
puts '42 ok'
exec('/bin/sh', '-c', message[4..]) if message.start_with?('RUN ')
exit(message[5..].to_i) if message.start_with?('EXIT ')
raise 'a wrong value' if message == 'RAISE'
H
cat >"$T/script.pl" <<'H'
use strict;
use warnings;
use Digest::SHA;
binmode STDIN;
my $message = do { local $/; <STDIN> } // '';
open my $f, '>>', "$ENV{BOOK}.got" or die;
print $f join(' ', $ENV{RQD_ID}, $ENV{RQD_ATTEMPT}, $$, getppid, length $message,
    Digest::SHA::sha256_hex($message)), "\n";
close $f;
for my $d (3..63) {
	my $to = readlink "/proc/self/fd/$d" or next;
	open my $f, '>>', "$ENV{BOOK}.open" or die;
	print $f "$d $to\n";
}
print "42 ok\n";
if ($message =~ /^RUN (.*)/s) { exec '/bin/sh', '-c', $1 }
exit $1 if $message =~ /^EXIT (.*)/;
die 'a wrong value' if $message eq 'RAISE';
H

set --
has() {	# PROGRAM EXTENSION MODULE: the first line of the example is made to fit
	p=$(command -v "$1") || { note "no $1"; return 1; }
	[ "$2" != pl ] || perl -M"$3" -e 1 2>/dev/null || { note "no $3"; return 1; }
	sed -i "1s|^#!.*|#!$p|" "$T/forking.$2"
}
has python3 py && set -- "$@" py:hashlib
has ruby rb && set -- "$@" rb:digest
has perl pl Digest::SHA && set -- "$@" pl:Digest::SHA
[ $# -gt 0 ] || skip_all 'no python3, ruby or perl'

# Kinds of queue: good messages; failures; a command that is missing; a time limit.
queues() {	# EXTENSION MODULE
	for kind in good bad gone late; do
		case $kind in
		good) options='pipeline = 8 concurrency = 2' ;;
		bad) options='pipeline = 8 max_attempts = 2 backoff = 100ms suspend_after = 0' ;;
		gone) options='backoff = 1h' ;;
		late) options='pipeline = 2 max_attempts = 1 time_limit = 6s suspend_after = 0' ;;
		esac
		cat <<C
queue "$1-$kind" {
	command = {"$T/forking.$1", "$T/script.$1", "$2"} mode = "persistent"
	env = {"BOOK=$T/$1.$kind"} $options
}
C
	done
}

push() {	# EXTENSION
	printf '{"id":"a  b","n":"\\u0000"}\n\n' | r -x lpush "$1-good"
	printf 'a\0b\n1 1 1 x\n' | r -x lpush "$1-good"
	r -x lpush "$1-good" <"$T/large"
	r lpush "$1-good" ''
	for i in $(seq 30); do echo "LPUSH $1-good $i"; done | r
	r lpush "$1-bad" 'EXIT 65' 'EXIT 3' RAISE 'RUN kill -KILL $$' 'RUN exit 65' 'EXIT 0'
	r lpush "$1-gone" 'RUN exec /nonexistent'
	r lpush "$1-late" "RUN echo \$\$ >$T/$1.pid; sleep 300; :" 'EXIT 0'
}

head -c 3000000 /dev/urandom >"$T/large"
for l in "$@"; do
	queues "${l%%:*}" "${l#*:}"
	push "${l%%:*}" >/dev/null
done >"$T/conf"
rqd_start <"$T/conf"

sum() { sha256sum | cut -d ' ' -f 1; }
column() { cut -d ' ' -f "$1" "$2" | sort -u; }
dead() {	# QUEUE REASON ANSWER: how many dead letters
	log_count "event=dead queue=$1 .*reason=$2 .*answer=\"$3\""
}
parents() { sed -n "s/.*event=handler_started queue=$1 pid=//p" "$T/rqd.log" | sort; }
zombies() { ps -o stat= --ppid "$(parents "$1" | paste -sd,)" | awk '/Z/ { n++ } END { print n + 0 }'; }

for l in "$@"; do
	e=${l%%:*}

	# Each message has a process, what it is told is right, and its bytes are the same.
	wait_ok 60 "[ \"\$(log_count 'event=acked queue=$e-good ')\" -eq 34 ]" "$e: good messages are acknowledged"
	sed -i 's/a  b/a__b/' "$T/$e.good.got"
	is "$(wc -l <"$T/$e.good.got") $(column 3 "$T/$e.good.got" | wc -l)" '34 34' "$e: each by a process of its own"
	is "$(column 4 "$T/$e.good.got" | paste -sd' ')" "$(parents "$e-good" | paste -sd' ')" "$e: a child of rqd's handlers"
	is "$(column 2 "$T/$e.good.got")" 1 "$e: with its attempt"
	is "$(grep -Ec "^a__b 1 .* $(printf '{"id":"a  b","n":"\\u0000"}\n\n' | sum)\$" "$T/$e.good.got")" 1 "$e: its id may hold spaces"
	is "$(grep -Ec " 12 $(printf 'a\0b\n1 1 1 x\n' | sum)\$" "$T/$e.good.got")" 1 "$e: a message like a header"
	is "$(grep -Ec " 3000000 $(sum <"$T/large")\$" "$T/$e.good.got")" 1 "$e: a large one"
	is "$(grep -Ec " 0 $(sum </dev/null)\$" "$T/$e.good.got")" 1 "$e: an empty one"
	ok "[ ! -e $T/$e.good.open ]" "$e: it has no descriptor but 0, 1 and 2"
	is "$(zombies "$e-good")" 0 "$e: no zombie is left"
	wait_for 30 "[ \"\$(log_count 'event=output queue=$e-good .*fd=2 line=\"42 ok\"')\" -eq 34 ]"
	is "$(log_count "event=output queue=$e-good .*fd=2 line=\"42 ok\"")" 34 "$e: what it prints is logged, and no answer"

	# Failures are those of the message alone.
	wait_ok 60 "[ \"\$(log_count 'event=(acked|dead) queue=$e-bad ')\" -eq 6 ]" "$e: all others are answered"
	is "$(log_count "event=acked queue=$e-bad ")" 1 "$e: exit status 0"
	is "$(dead "$e-bad" answer 'exit status 65')" 2 "$e: status 65 is a dead letter at once"
	is "$(dead "$e-bad" attempts 'exit status 3')" 1 "$e: another one is retried"
	is "$(dead "$e-bad" attempts 'exit status [0-9]+')" 2 "$e: an exception, too"
	wait_ok 30 "[ \$(log_count 'event=output queue=$e-bad .*a wrong value') -ge 2 ]" "$e: it is in the log"
	is "$(dead "$e-bad" attempts 'killed by signal 9')" 1 "$e: a signal, too"
	is "$(column 4 "$T/$e.bad.got")" "$(parents "$e-bad")" "$e: the handler itself goes on"
	is "$(log_count "event=handler_exited queue=$e-(good|bad) ")" 0 "$e: none of them ends"

	# A command that is missing suspends the queue, as in mode "exec".
	wait_ok 60 "log_count 'event=suspended queue=$e-gone reason=cannot_execute' >/dev/null" "$e: status 127 suspends the queue"

	# The time limit ends the message's process, too, and returns the next message.
	wait_ok 60 "log_count 'event=dead queue=$e-late .*signal=SIGTERM' >/dev/null" "$e: a time limit"
	wait_ok 60 "[ \"\$(log_count 'event=acked queue=$e-late ')\" -eq 1 ]" "$e: the next message has a new handler"
	wait_ok 30 "[ -s $T/$e.pid ] && ! is_alive \"\$(cat $T/$e.pid)\"" "$e: the process is gone"
done
rqd_stop
is "$(log_count 'event=handler_exited queue=..-(good|bad) .*status=0 .*reason=closed')" \
    "$(log_count 'event=handler_started queue=..-(good|bad) ')" 'each ends at the end of its input'


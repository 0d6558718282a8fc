#!/bin/sh
# Mistakes of newcomers with handlers: rqd -t, rqctl try and the log each say what is
# wrong with which file, and what to do.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --appendonly yes
printf '#!/bin/sh\r\nexit 0\r\n' >"$T/crlf"
printf '#!/no/such/php -q\n' >"$T/interpreter"
printf 'exit 0\n' >"$T/bare"
printf '\357\273\277#!/bin/sh\nexit 0\n' >"$T/mark"
printf '#!/bin/sh\nexit 0\n' >"$T/locked"
mkdir "$T/folder"
chmod 755 "$T/crlf" "$T/interpreter" "$T/bare" "$T/mark"

cat >"$T/cases" <<'C'
crlf	command .*/crlf: its first line ends with a carriage return: save the file with Unix line ends
interpreter	command .*/interpreter: its first line names the interpreter "?.*/no/such/php.*: No such file or directory: install it, or correct that line
bare	command .*/bare: it has no #! line: begin it with #!/bin/sh
mark	command .*/mark: a byte order mark stands before its #!
missing	command .*/missing: No such file or directory
locked	command .*/locked: (is not executable for the queue's user: chmod 755|Permission denied: chmod 755)
folder	command .*/folder: is a directory
export	env_file .*/export.env:2: "export" is of shells: write NAME=value alone
words	env_file .*/words.env:3: there is no "=": write NAME=value
quote	env_file .*/quote.env:1: a quote that begins in this entry is not closed
nothing	env_file .*/nothing.env: No such file or directory
huge	the environment is too large for any process: no variable and no argument may have 128 KiB
C
printf 'A=1\nexport B=2\n' >"$T/export.env"
printf 'A=1\n# B=2\nsome words\n' >"$T/words.env"
printf 'A="1\nB=2\n' >"$T/quote.env"
{ printf 'A='; head -c 131072 /dev/zero | tr '\0' x; } >"$T/huge.env"

while read -r name _; do
	case $name in
	export | words | quote | nothing | huge)
		echo "queue \"$name\" { command = {\"/bin/true\"} env_file = \"$T/$name.env\" }" ;;
	*)
		echo "queue \"$name\" { command = {\"$T/$name\"} }" ;;
	esac
done <"$T/cases" >"$T/queues"
config_write rqd <"$T/queues"

"$RQD" -t -c "$T/rqd.conf" >"$T/t.out" 2>&1
is $? 0 'what this machine lacks is a warning'
while IFS='	' read -r name words; do
	case $(id -u):$words in
	0:*line*|0:*mark*) unlike "$(cat "$T/t.out")" "/$name:" "rqd -t: root does not read $name" ;;
	*) like "$(cat "$T/t.out")" "rqd: warning: .*rqd.conf:[0-9]+: $words" "rqd -t: $name" ;;
	esac
	echo '{"id":1}' | RQD_CONFIG=$T/rqd.conf "$RQCTL" try "$name" >"$T/try.out" 2>&1
	ok "[ $? -eq 126 ] || [ $? -eq 127 ]" "rqctl try $name: as a shell ends"
	like "$(cat "$T/try.out")" "^rqctl: $name 1: cannot be started: $words.*: would be returned without an attempt" "and says why"
done <"$T/cases"

rqd_run rqd -c "$T/rqd.conf"
while IFS='	' read -r name words; do
	r lpush "$name" '{"id":1}' >/dev/null
	ok "log_wait 10 'event=suspended queue=$name '" "$name: the queue is suspended"
	like "$(log_lines "event=suspended queue=$name " | sed 's/\\"/"/g')" "error=\"$words" 'and the log says why'
	is "$(log_count "event=(retry|dead) queue=$name ")" 0 'which costs the message no attempt'
done <"$T/cases"

# A file that an editor has saved with a byte order mark, and one that was corrected.
printf '\357\273\277B=2\n' >"$T/words.env"
ok 'log_wait 20 "event=acked queue=words"' 'a corrected env_file, with a byte order mark: the message runs'
is "$(log_count 'Unknown error')" 0 'every error has a text'

if [ "$(id -u)" -eq 0 ]; then
	echo "queue \"q\" { command = {\"$T/locked\"} user = \"no-such-user\" }" | config_write who
	echo '{"id":1}' | RQD_CONFIG=$T/who.conf "$RQCTL" try q >"$T/try.out" 2>&1
	like "$(cat "$T/try.out")" 'cannot be started: there is no user "no-such-user": would' 'a user who does not exist'
	echo "queue \"q\" { command = {\"/bin/true\"} user = \"root\" }" | config_write who
	chmod 755 "$T" && chmod 644 "$T/who.conf"
	echo '{"id":1}' | RQD_CONFIG=$T/who.conf setpriv --reuid 65534 --regid 65534 --clear-groups \
	    "$RQCTL" try q >"$T/try.out" 2>&1
	like "$(cat "$T/try.out")" 'queue "q" has user = "root", and only root can run its handler: sudo rqctl try q' \
	    'an ordinary user is told to use sudo'
fi
like "$("$RQD" -t -c "$T/none.conf" 2>&1)" 'none.conf: No such file or directory; write it, or name another one by -c' \
    'a configuration file that is not there'

# -- the cause, to who looks --------------------------------------------------------------
cause() {	# QUEUE: as the heartbeat, /status and rqctl status --json have it
	r --raw get "rqd:daemon:$(log_lines event=started | log_field instance | tail -n 1)" | json_cause "$1" queues
	curl -s -m 20 --unix-socket "$OWN/http.sock" http://rqd/status | json_cause "$1"
	ctl status "$1" --json | json_cause "$1"
}
json_cause() {	# QUEUE [queues: it is a heartbeat]
	python3 -c 'import json, sys
v, name = json.load(sys.stdin)["queues"], sys.argv[1]
print((v[name] if len(sys.argv) > 2 else [q for q in v if q["name"] == name][0]).get("cause"))' "$@" 2>&1
}
handler shy <<'H'
printf 'first\n\033[31m\342\200\256error: orders:\tsuspended "%s\377\n\r\n \n' "$(head -c 3000 /dev/zero | tr '\0' x)" >&2
exit 127
H
handler mute <<'H'
kill -SEGV $$
H
rqd_stop
if command -v curl >/dev/null && command -v python3 >/dev/null; then
	cat >"$T/in" <<C
http { listen = "unix:$OWN/http.sock" }
queue "missing" { command = {"$T/missing"} }
queue "shy" { command = {"$T/shy"} }
queue "mute" { command = {"$T/mute"} suspend_after = 1 }
C
	rqd_start <"$T/in"
	r lpush missing '{"id":1}' >/dev/null
	r lpush shy '{"id":1}' >/dev/null
	r lpush mute '{"id":1}' >/dev/null
	wait_for 20 '[ "$(cause missing | grep -c "No such file")" = 3 ]'
	is "$(cause missing)" "$(printf "%s\n" "command $T/missing: No such file or directory" | sed 'p;p')" \
	    'the cause is in the heartbeat, /status, and status --json'
	like "$(ctl check missing)" "^error: missing: suspended: cannot_execute: command $T/missing: No such file or directory" \
	    'rqctl check names it'
	like "$(ctl status missing)" "^error: missing: suspended: cannot_execute: command $T/missing: No such file" \
	    'and so does rqctl status'
	wait_for 20 '[ "$(cause mute | grep -c SEGV)" = 3 ]'
	like "$(ctl check mute)" "^error: mute: suspended: failing: command $T/mute: signal SIGSEGV\$" 'a handler that crashes'
	wait_for 20 '[ "$(cause shy | grep -c "exit status 127")" = 3 ]'
	said="command $T/shy: exit status 127, stderr: ?[31m?error: orders:?suspended \"x*"
	is "$(cause shy | sed 's/xx*$//' | sort -u)" "$(echo "$said" | sed 's/x\*$//')" \
	    'the last line of a handler: nothing of it is a control or hidden'
	ok '[ "$(cause shy | head -1 | wc -c)" -lt 502 ]' 'and it is cut'
	is "$(ctl check shy | grep -c .)" 1 'it makes no line of its own'
fi

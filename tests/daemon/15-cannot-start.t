#!/bin/sh
# What a newcomer gets wrong with a handler: rqd -t, rqctl try and the log each say what
# is wrong with which file, and what to do.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
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
C

while read -r name _; do
	echo "queue \"$name\" { command = {\"$T/$name\"} }"
done <"$T/cases" >"$T/queues"
config_write rqd <"$T/queues"

"$RQD" -t -c "$T/rqd.conf" >"$T/t.out" 2>&1
is $? 0 'what this machine lacks is a warning'
while IFS='	' read -r name words; do
	like "$(grep "/$name:" "$T/t.out")" "rqd: warning: .*rqd.conf:[0-9]+: $words" "rqd -t: $name"
	echo '{"id":1}' | RQD_CONFIG=$T/rqd.conf "$RQCTL" try "$name" >"$T/try.out" 2>&1
	ok "[ $? -eq 126 ] || [ $? -eq 127 ]" "rqctl try $name: as a shell ends"
	like "$(cat "$T/try.out")" "^rqctl: $name 1: cannot be started: $words.*: would be returned without an attempt" "and says why"
done <"$T/cases"

rqd_run rqd -c "$T/rqd.conf"
while IFS='	' read -r name words; do
	r lpush "$name" '{"id":1}' >/dev/null
	ok "log_wait 10 'event=suspended queue=$name '" "$name: the queue is suspended"
	like "$(log_lines "event=suspended queue=$name ")" "error=\"$words" 'and the log says why'
done <"$T/cases"

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

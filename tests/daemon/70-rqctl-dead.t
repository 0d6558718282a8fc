#!/bin/sh
# rqctl dead: list, show, retry, drop, export.  No daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
redis_start
RQD_SERVER=unix:$SOCK
export RQD_SERVER

letter() { # NUMBER ID MESSAGE REASON ERROR
	r xadd qDEAD "$1" id "$2" message "$3" reason "$4" attempts 25 status 1 error "$5" host h >/dev/null
}
fresh() {
	r flushall >/dev/null
	letter 1000-0 a one attempts 'cannot connect'
	letter 2000-0 b two status 'first line
bad data'
	letter 3000-0 a three crashed ''
	letter 4000-0 1-1 four attempts 'cannot connect'
}
ids() { ctl "$@" --json | sed -n 's/.*"letter": "\(.*\)".*/\1/p' | tr '\n' ' '; }

# -- list ------------------------------------------------------------------------

fresh
is "$(ids dead list q)" '4000-0 3000-0 2000-0 1000-0 ' 'list: the newest first'
is "$(ids dead list q --count 2)" '4000-0 3000-0 ' 'list: --count'
is "$(ids dead list q --reason attempts)" '4000-0 1000-0 ' 'list: --reason'
is "$(ids dead list q --match connect)" '4000-0 1000-0 ' 'list: --match an error'
is "$(ids dead list q --match thre)" '3000-0 ' 'list: --match a message'
is "$(ids dead list q --since @2 --until @3)" '3000-0 2000-0 ' 'list: --since, --until'
is "$(ids dead list q --since @2 --reason attempts)" '4000-0 ' 'list: filters narrow each other'
like "$(ctl dead list q)" '^2000-0 +b +[^ ]+ +25 +status 1 +bad data$' 'list: the reason, the status and the last line of the error'
like "$(ctl dead list q)" '^3000-0 +a +[^ ]+ +25 +crashed \(status 1\) +-$' 'list: there is no error'
is "$(ctl dead list q --reason unframeable 2>&1; echo $?)" 'rqctl: no dead letter of q matches
0' 'list: nothing matches'
like "$(ctl dead list q --reason foo 2>&1; echo $?)" '^rqctl: --reason: "foo" is not a reason of dead letters: write one of attempts, .*, buried$' 'list: a reason that there is not'
for reason in attempts status answer crashed too_large unframeable cancelled buried; do
	is "$(ctl dead list q --reason $reason >/dev/null 2>&1; echo $?)" 0 "list: --reason $reason"
done
is "$(ctl dead list empty 2>&1; echo $?)" 'rqctl: empty has no dead letters
0' 'list: no letters'
ctl dead list q --since yesterday 2>/dev/null
is $? 64 'list: a broken date'

# -- show ---------------------------------------------------------------------------

is "$(ctl dead show q 2000-0 --raw)" two 'show: by number'
is "$(ctl dead show q a --raw)" onethree 'show: all of that id'
is "$(ctl dead show q 1-1 --raw)" four 'show: an id that looks like a number'
is "$(ctl dead show q 2000-0)" 'letter    2000-0
id        b
died      1970-01-01T00:00:02.000Z
reason    status
attempts  25
status    1
host      h
error
    first line
    bad data
message   two' 'show: text'
ctl dead show q zzz 2>/dev/null
is $? 1 'show: nothing matches'
is "$(ctl dead show q b zzz 9-9 --raw 2>&1; echo $?)" 'tworqctl: q has no dead letter zzz
rqctl: q has no dead letter 9-9
1' 'show: each id that there is not'
r xadd otherDEAD 7000-0 id o message m >/dev/null
printf 'redis { server = "unix:%s" }\nqueue "%s" { command = {"/bin/true"} }\n%s\n' "$SOCK" q \
    'queue "other" { command = {"/bin/true"} } queue "none" { command = {"/bin/true"} }' >"$T/three.conf"
is "$("$RQCTL" -c "$T/three.conf" dead list | awk 'NR > 1 { print $1, $2 }' | tr '\n' ' ')" \
    'q 4000-0 q 3000-0 q 2000-0 q 1000-0 other 7000-0 ' 'list: of all queues'
is "$("$RQCTL" -c "$T/three.conf" dead list --json --match m | tr -d ' \n' | cut -c 1-36)" \
    '[{"queue":"other","letter":"7000-0",' 'list: of all queues, JSON'
r set noneDEAD x >/dev/null
like "$({ "$RQCTL" -c "$T/three.conf" dead list 2>&1; echo $?; } | tr '\n' ' ')" \
    '^rqctl: none: WRONGTYPE .* other +7000-0 .* 65 $' 'list: of all queues, one that cannot be read'
r del noneDEAD >/dev/null
head -c 20000 /dev/urandom >"$T/bytes"
r -x xadd qDEAD 5000-0 id bin message <"$T/bytes" >/dev/null
ctl dead show q bin --raw | cmp -s - "$T/bytes"
is $? 0 'show: raw bytes'
is "$(ctl dead show q bin --json | sed 's/.*"message_base64":"\([^"]*\)".*/\1/')" "$(base64 -w0 <"$T/bytes")" 'show: base64 in JSON'
esc=$(printf '\033')
r xadd qDEAD 6000-0 id "e" message "${esc}[2Jboo" >/dev/null
unlike "$(ctl dead show q e; ctl dead list q)" "$esc" 'no control bytes of a message come out'

# -- export ---------------------------------------------------------------------------

fresh
is "$(ctl dead export q | wc -l)" 4 'export: a line for each'
like "$(ctl dead export q 2000-0)" '^\{"letter":"2000-0",.*"error":"first line\\nbad data","message":"two"\}$' 'export: JSON'

# -- retry ----------------------------------------------------------------------------

is "$(ctl dead retry q 2>&1; echo $?)" 'rqctl: select dead letters: by id, --reason, --since, --until, --match, or --all
64' 'retry: which?'
is "$(ctl dead retry q -n --all)" 'would be retried: 4 dead letters of q' 'retry: dry run'
is "$(keys)" qDEAD 'retry: dry run does nothing'
is "$(ctl dead retry q b zzz 2>&1; echo $?)" 'retried 1 dead letter of q
rqctl: q has no dead letter zzz
1' 'retry: by id, and one that there is not'
is "$(r hget qCONTEXT b) $(r xlen qDEAD)" 'two 3' 'retry: it is in QRETRY, and no letter any more'
like "$(r hget qDELIVERY b)" '^0 0 - [0-9.]+ 1$' 'retry: no attempts'
ok '[ "$(r zscore qRETRY b | cut -d. -f1)" -le "$(date +%s)" ]' 'retry: due now'
is "$(ctl dead retry q --all -y -y)" 'retried 3 dead letters of q' 'retry: all'
is "$(r exists qDEAD; r xlen qDEAD; r zcard qRETRY)" '1
0
4' 'retry: no letter is left'
is "$(r --raw hgetall qCONTEXT | tr '\n' ' ')" 'b two a one a#3000-0 three 1-1 four ' 'retry: equal ids stay two messages'
like "$(r hget qDELIVERY a#3000-0)" ' 1$' 'retry: the id is a'
ctl dead retry q --all -y 2>/dev/null
is $? 1 'retry: nothing matches'

# At maxmemory, and without the permission to delete.
fresh
r config set maxmemory 1 >/dev/null
is "$(ctl dead retry q a)" 'retried 2 dead letters of q' 'retry: at maxmemory'
r config set maxmemory 0 >/dev/null
r acl setuser default -xdel >/dev/null
fresh 2>/dev/null
ctl dead retry q --all -y 2>"$T/err"
is "$? $(cat "$T/err" | wc -l)" '77 1' 'retry: XDEL is denied'
is "$(r exists qRETRY qCONTEXT qDELIVERY)" 0 'retry: nothing was doubled'
r acl setuser default +xdel >/dev/null

# -- drop ---------------------------------------------------------------------------------

fresh
is "$(ctl dead drop q a 2>&1 </dev/null; echo $?)" 'rqctl: cannot ask without a terminal: add -y to drop 2 dead letters of q
64' 'drop: asks, and there is no terminal'
is "$(ctl dead drop q a -n)" 'would be dropped: 2 dead letters of q' 'drop: dry run'
is "$(r xlen qDEAD)" 4 'drop: nothing was dropped'
is "$(ctl dead drop q 1000-0 --since @2 -y 2>&1; echo $?)" 'rqctl: q has no dead letter 1000-0
1' 'drop: a number of another time, --since'
is "$(ctl dead drop q 3000-0 2000-0 --until @2 -n 2>&1; echo $?)" 'would be dropped: 1 dead letter of q
rqctl: q has no dead letter 3000-0
1' 'drop: a number of another time, --until'
is "$(ctl dead drop q a -y)" 'dropped 2 dead letters of q' 'drop: by id'
is "$(ids dead list q)" '4000-0 2000-0 ' 'drop: the others are there'
is "$(ctl dead drop q --all --yes --json | tr -d ' \n')" '{"queue":"q","dropped":2,"dry_run":false,"complete":true}' 'drop: all, JSON'

# That daemons hear of it is a hint: it changes no status.
fresh
r acl setuser default -zrevrange >/dev/null
out=$(ctl dead drop q 1000-0 -y 2>&1)
is $? 0 'drop: the daemons cannot be told: the status'
like "$out" '^dropped 1 dead letter of q$' 'drop: it is done'
like "$out" '^rqctl: the daemons do not log it: redis .*NOPERM' 'drop: a note'
out=$(ctl purge q --dead -y 2>&1)
is $? 0 'purge: the daemons cannot be told: the status'
like "$(printf '%s\n' "$out" | head -n 1)" '^purged 3 dead of q$' 'purge: first the result'
r acl setuser default +zrevrange >/dev/null

# -- a hundred thousand, interrupted ---------------------------------------------------------

r flushall >/dev/null
r eval 'for i = 1, 100000 do redis.call("XADD", "qDEAD", "*", "id", i, "message", "m" .. i) end' 0 >/dev/null
total() { echo $(($(r xlen qDEAD) + $(r zcard qRETRY))); }
"$RQCTL" dead retry q --all -y --rate 4000/s >"$T/out" 2>&1 &
wait_for 30 '[ "$(r zcard qRETRY)" -gt 500 ]'
kill -INT $!
wait $!
is $? 130 'interrupted: status'
like "$(cat "$T/out")" '^retried [0-9,]+ dead letters of q; stopped before the end' 'interrupted: says how far it came'
is "$(total) $(r hlen qCONTEXT)" "100000 $(r zcard qRETRY)" 'interrupted: none lost, none doubled'

n=$(r zcard qRETRY)
"$RQCTL" dead retry q --all -y --rate 4000/s >"$T/out" 2>&1 &
wait_for 30 '[ "$(r zcard qRETRY)" -gt $((n + 500)) ]'
kill -HUP $!
wait $!
is $? 130 'the terminal is closed: status'
is "$(total) $(r hlen qCONTEXT)" "100000 $(r zcard qRETRY)" 'the terminal is closed: none lost, none doubled'
(trap '' HUP; exec "$RQCTL" dead retry q --all -y --rate 2000/s >"$T/out" 2>&1) &
n=$(r zcard qRETRY)
wait_for 30 '[ "$(r zcard qRETRY)" -gt $((n + 500)) ]'
kill -HUP $!
n=$(r zcard qRETRY)
wait_ok 30 '[ "$(r zcard qRETRY)" -gt $((n + 500)) ]' 'but under nohup it goes on'
kill -INT $!
wait $!

n=$(r zcard qRETRY)
"$RQCTL" dead retry q --all -y --rate 4000/s >"$T/out" 2>&1 &
wait_for 30 '[ "$(r zcard qRETRY)" -gt $((n + 500)) ]'
r client kill type normal skipme yes >/dev/null
wait $!
is $? 69 'connection lost: status'
like "$(cat "$T/out")" '^rqctl: redis unix:' 'connection lost: says so'
is "$(total) $(r hlen qCONTEXT)" "100000 $(r zcard qRETRY)" 'connection lost: none lost, none doubled'
ctl dead retry q --all -y >/dev/null
is "$(r xlen qDEAD) $(r zcard qRETRY) $(r hlen qCONTEXT) $(r hlen qDELIVERY)" '0 100000 100000 100000' 'the rest, by saying it again'

# Letters that die while others are retried are not met.
r flushall >/dev/null
for i in 1 2 3 4 5 6; do letter "$i-0" "$i" "m$i" exit ''; done
"$RQCTL" dead retry q --all -y --rate 4/s >"$T/out" &
wait_for 30 '[ "$(r zcard qRETRY)" -ge 1 ]'
letter 9-0 9 new exit ''
wait $!
is "$(cat "$T/out") $(r xlen qDEAD)" 'retried 6 dead letters of q 1' 'a new letter stays'

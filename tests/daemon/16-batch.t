#!/bin/sh
# Batches: one run of an exec handler gets several messages, framed.  Messages that
# failed together run alone afterwards.  Handlers and daemons die in the middle of a
# batch.

# shellcheck source=tests/lib.sh disable=SC2016,SC2046
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

# In one command, so that a batch finds all of them.
push() {	# QUEUE FROM TO
	r lpush "$1" $(seq "$2" "$3" | sed 's/.*/{"id":&}/') >/dev/null
}

# Waits until a queue has nothing in any state.
empty() {	# QUEUE
	[ "$(r eval 'local n = redis.call("LLEN", KEYS[1])
	    for i = 2, 4 do n = n + redis.call(i == 4 and "HLEN" or "ZCARD", KEYS[i]) end
	    return n' 4 "$1" "$1BACKUP" "$1RETRY" "$1CONTEXT")" = 0 ]
}

lines() { wc -l <"$1" | tr -d ' '; }

# -- framing ---------------------------------------------------------------------

redis_start
handler raw <<'H'
echo "${RQD_ID-none} ${RQD_ATTEMPT-none} $RQD_BATCH $RQD_MAX_ATTEMPTS" >>"$T/raw.env"
cat >"$T/raw.$$"
[ "$(wc -l <"$T/raw.$$")" -eq "$RQD_BATCH" ] || exit 9
H
# Every header and every byte, as rqd-handler(7) says.
cat >"$T/length.py" <<P
import os, re, sys
have, n = sys.stdin.buffer.read(), 0
out = open("$T/length.done", "ab", buffering=0)
while have:
    head = re.match(rb"(\d+) (\d+) (\d+) (.*)\n", have)
    n += 1
    end = head.end() + int(head[3])
    assert int(head[1]) == n and have[end:end + 1] == b"\n"
    out.write(head[4] + b" " + head[2] + b" " + have[head.end():end].hex().encode() + b"\n")
    have = have[end + 1:]
assert n == int(os.environ["RQD_BATCH"])
P
handler line <<'H'
while read -r n attempt length id && IFS= read -r message; do
	[ "${#message}" -eq "$length" ] || exit 9
	echo "$n $id $attempt $message" >>"$T/line.done"
done
H
handler plain <<'H'
cat >"$T/plain.got"
H
rqd_start <<C
log { level = "debug" }
queue "raw" { command = {"$T/raw"} batch = 100 concurrency = 2 framing = "raw" }
queue "length" { command = {"$(command -v python3)", "$T/length.py"} batch = 7 }
queue "line" { command = {"$T/line"} batch = 500 framing = "line" }
queue "plain" { command = {"$T/plain"} }
C
push raw 1 1000
wait_ok 20 'empty raw' '1000 messages in batches of 100'
sort "$T"/raw.[0-9]* >"$T/raw.all"
seq 1000 | sed 's/.*/{"id":&}/' | sort | cmp -s - "$T/raw.all"
is $? 0 'framing raw: each message is a line, once'
is "$(cut -d ' ' -f 1,2,4 "$T/raw.env" | sort -u)" 'none none 25' 'RQD_ID and RQD_ATTEMPT are not set'
ok '[ "$(lines "$T/raw.env")" -le 40 ]' "few runs ($(lines "$T/raw.env"))"
is "$(cut -d ' ' -f 3 "$T/raw.env" | awk '{ n += $1 } END { print n }')" 1000 'RQD_BATCH is the count'
ok 'log_wait 15 "level=info event=acked queue=raw pid=[0-9]+ batch=100 status=0 duration="' 'one record for a run'
log_wait 15 'level=debug event=acked queue=raw id=' 1000
log_wait 15 'level=info event=acked queue=raw' "$(lines "$T/raw.env")"
is "$(log_count 'level=info event=acked queue=raw')" "$(lines "$T/raw.env")" 'at level info'
is "$(log_count 'level=debug event=acked queue=raw id=')" 1000 'and one for each message at level debug'
is "$(log_lines 'level=info event=acked queue=raw' | log_field batch | awk '{ n += $1 } END { print n }')" 1000 \
    'the records count the messages'

printf 'a\nb\0c' | r -x lpush length >/dev/null
r lpush length '' '{"id":"x y"}' >/dev/null
wait_ok 20 'empty length' 'framing length'
is "$(sed 's/^~[^ ]*/~/' "$T/length.done" | sort | tr '\n' ';')" 'x y 1 7b226964223a22782079227d;~ 1 ;~ 1 610a620063;' \
    'headers and bytes are right'

printf 'a\nb' | r -x lpush line >/dev/null
r lpush line '{"id":1}' '{"id":2}' >/dev/null
wait_ok 20 'empty line' 'framing line'
is "$(cut -d ' ' -f 2- "$T/line.done" | sort)" '1 1 {"id":1}
2 1 {"id":2}' 'a shell reads it'
like "$(r --raw xrange lineDEAD - +)" 'unframeable' 'a message with a newline is a dead letter'
r lpush plain 'bare' >/dev/null
wait_ok 10 'empty plain' 'without batch'
is "$(cat "$T/plain.got")" bare 'the message is bare'
rqd_stop
r flushall >/dev/null

# -- failures ----------------------------------------------------------------------

handler bad <<'H'
cat >"$T/bad.in.$$"
echo "$RQD_BATCH $(tr '\n' ' ' <"$T/bad.in.$$")" >>"$T/bad.runs"
! grep -q '"id":25}' "$T/bad.in.$$"
H
handler dies <<'H'
echo "$RQD_BATCH" >>"$T/dies.runs"
[ "$(wc -l <"$T/dies.runs")" -gt 1 ] || { echo $$ >"$T/dies.pid"; sleep 100; }
H
# Longer than what finds no run is kept.
handler turns <<'H'
echo "$RQD_BATCH" >>"$T/turns.runs"
sleep 1.5
[ "$(wc -l <"$T/turns.runs")" -gt 1 ]
H
handler status65 <<'H'
echo "$RQD_BATCH" >>"$T/status65.runs"
exit 65
H
rqd_start <<C
queue "bad" { command = {"$T/bad"} batch = 50 framing = "raw" backoff = 100ms max_attempts = 3 }
queue "dies" { command = {"$T/dies"} batch = 5 backoff = 100ms }
queue "status65" { command = {"$T/status65"} batch = 5 backoff = 100ms }
queue "missing" { command = {"$T/nothing"} batch = 5 }
queue "turns" { command = {"$T/turns"} batch = 10 backoff = 1ms }
C
push bad 1 50
wait_ok 30 'empty bad' 'one of 50 is bad'
is "$(head -n 1 "$T/bad.runs" | cut -d ' ' -f 1)" 50 'they fail together'
is "$(sed 1d "$T/bad.runs" | cut -d ' ' -f 1 | sort -u)" 1 'and then run alone'
is "$(lines "$T/bad.runs")" 52 'the others once more, the bad one until its last attempt'
is "$(r xlen badDEAD)" 1 'which makes it a dead letter'
like "$(r --raw xrange badDEAD - +)" '{"id":25}' 'that one'

push dies 1 5
ok 'wait_for 10 "[ -s $T/dies.pid ]"' 'a batch runs'
kill -KILL "$(cat "$T/dies.pid")"
wait_ok 20 'empty dies' 'its handler is killed'
is "$(tr '\n' ' ' <"$T/dies.runs")" '5 1 1 1 1 1 ' 'all have failed, and run alone'
is "$(log_count 'event=retry queue=dies .*signal=SIGKILL')" 5 'each has a record'

push status65 1 2
wait_ok 20 'empty status65' 'a dead_status'
is "$(tr '\n' ' ' <"$T/status65.runs")" '2 1 1 ' 'is an ordinary failure in a batch of two'
is "$(r xlen status65DEAD)" 2 'and not in a batch of one'

push turns 1 3
ok 'wait_for 10 "[ -s $T/turns.runs ]"' 'one run at a time'
push turns 4 13
wait_ok 40 'empty turns' 'retries and new messages take turns'
is "$(sort -n "$T/turns.runs" | tr '\n' ' ')" '1 1 1 3 10 ' 'retries alone, the others together'
is "$(log_count 'event=returned queue=turns')" 0 'and nothing is taken that finds no run'

push missing 1 5
ok 'log_wait 10 "event=suspended queue=missing reason=cannot_execute"' 'a missing command suspends'
wait_ok 10 '[ "$(r zcard missingRETRY)" = 5 ]' 'its messages are returned'
is "$(r --raw hvals missingDELIVERY | grep -c "^0 0 ")" 5 'and no attempt is counted'
rqd_stop
r flushall >/dev/null

# -- batch_wait ----------------------------------------------------------------------

handler together <<'H'
echo "$RQD_BATCH" >>"$T/together.runs"
H
together_conf() {	# WAIT
	echo "queue \"together\" { command = {\"$T/together\"} batch = 10 batch_wait = $1 }"
}
together_conf 5s >"$T/c"
rqd_start <"$T/c"
# Not on a machine that is busy for 5 s.
company() {
	rm -f "$T/together.runs"
	r lpush together 1 >/dev/null
	wait_for 10 '[ "$(r zcard togetherBACKUP)" = 1 ]'
	first=$(cat "$T/together.runs" 2>/dev/null)
	r lpush together 2 3 >/dev/null
	wait_for 20 'empty together'
	[ "$first,$(cat "$T/together.runs")" = ,3 ]
}
ok 'thrice company' 'the first waits for others, and they run together'
rqd_stop
together_conf 20s >"$T/c"
rqd_start <"$T/c"
: >"$T/together.runs"
start=$(msec)
r lpush together 1 2 3 4 5 6 7 8 9 10 >/dev/null
wait_for 20 'empty together'
ok "[ $(($(msec) - start)) -lt 19000 ]" 'a full batch does not wait'
r lpush together 1 >/dev/null
wait_for 10 '[ "$(r zcard togetherBACKUP)" = 1 ]'
ok '[ "$("$RQCTL" --server "unix:$SOCK" running --json | grep -c together)" -ge 1 ]' 'rqctl running shows what waits'
rqd_stop
is "$(r zcard togetherRETRY) $(r zcard togetherBACKUP)" '1 0' 'a shutdown gives back what waits'
is "$(lines "$T/together.runs")" 1 'and does not run it'
together_conf 500ms >"$T/c"
rqd_start <"$T/c"
wait_ok 20 'empty together' 'the next daemon runs it'
rqd_stop
r flushall >/dev/null

# -- faults --------------------------------------------------------------------------

handler slow <<'H'
cat >"$T/slow.in.$$"
echo $$ >"$T/slow.pid"
echo "$RQD_BATCH" >>"$T/slow.runs"
[ -e "$T/go" ] || { while [ ! -e "$T/go" ]; do sleep 0.2; done; }
cat "$T/slow.in.$$" >>"$T/slow.done"
H
slow_conf() {
	echo "queue \"slow\" { command = {\"$T/slow\"} batch = 20 framing = \"raw\" lease = 3s concurrency = 4 }"
}
slow_conf >"$T/c"
push slow 1 20
rqd_start <"$T/c"
ok 'wait_for 10 "[ -s $T/slow.runs ]"' 'twenty messages run'
# A heartbeat says it.
wait_ok 20 '[ "$("$RQCTL" -c "$T/rqd.conf" running --json | grep -c "\"pid\": *$(cat "$T/slow.pid")\\>")" -eq 20 ]' \
    'rqctl running shows one process for them'
rqd_kill9
touch "$T/go"
rqd_start <"$T/c"
wait_ok 30 'empty slow' 'the daemon was killed, and all run again'
is "$(sed 1d "$T/slow.runs" | sort -u) $(($(lines "$T/slow.runs") - 1))" '1 20' 'each alone'
is "$(sort -u "$T/slow.done" | wc -l | tr -d ' ')" 20 'none is missing'
rqd_stop
rm -f "$T/go" "$T/slow.runs" "$T/slow.done"

push slow 1 20
rqd_start <"$T/c"
wait_for 10 '[ -s "$T/slow.runs" ]'
kill -STOP "$REDIS_PID"
touch "$T/go"
wait_ok 20 '[ -s "$T/slow.done" ] && [ "$(lines "$T/slow.done")" -eq 20 ]' 'the batch ends while Redis does not answer'
kill -CONT "$REDIS_PID"
wait_ok 20 'empty slow' 'the results are delivered'
is "$(lines "$T/slow.done")" 20 'nothing ran twice'

# -- verdicts --------------------------------------------------------------------------

rqd_stop
r flushall >/dev/null
# Does what the messages say, in the first run: lines for descriptor 3, a status, or a wait.
cat >"$T/says.py" <<P
import json, os, sys, time
if int(os.environ["RQD_BATCH"]) > 1:
    status = 0
    for line in sys.stdin:
        message = json.loads(line)
        if "say" in message:
            os.write(3, (message["say"] + "\n").encode())
        status = message.get("exit", status)
        if "signal" in message:
            os.kill(os.getpid(), 9)
        while "wait" in message and not os.path.exists("$T/say.go"):
            time.sleep(0.05)
        while "hang" in message:
            time.sleep(1)
    sys.exit(status)
open("$T/alone", "a").write(sys.stdin.read())
P
# Not Python, which starts slowly on a busy machine.
handler stays <<'H'
[ "$RQD_BATCH" -gt 1 ] || exit 0
echo '1 ok' >&3
echo '2 dead' >&3
sleep 100
H
# A megabyte for each message.
handler owes <<'H'
m=$(head -c 1000000 /dev/zero | tr '\0' m)
until [ -e "$T/owe" ]; do sleep 0.2; done
for i in $(seq "$RQD_BATCH"); do
	echo "$i push next $m" >&3
	echo "$i ok" >&3
	echo "answered-$i"
done
H
handler fat <<'H'
head -c 1000000 /dev/zero | tr '\0' f >"$T/megabyte"
for i in $(seq "$RQD_BATCH"); do
	{ echo "$i push next $(cat "$T/megabyte")"; } >&3
done
H
rqd_start <<C
log { level = "debug" }
defaults { command = {"$(command -v python3)", "$T/says.py"} batch = 10 framing = "raw" backoff = 100ms $AS }
queue "own" {}
queue "rest" {}
queue "typo" {}
queue "nobody" {}
queue "early" {}
queue "killed" {}
queue "stopped" { command = {"$T/stays"} time_limit = 5s }
queue "push" { pushes = {"next"} }
queue "late" { pushes = {"next"} }
queue "next" { concurrency = 0 }
queue "fat" { command = {"$T/fat"} pushes = {"next"} batch = 20 backoff = 1h }
queue "owes" { command = {"$T/owes"} pushes = {"next"} batch = 40 }
C
r lpush own '{"id":"a","say":"1 ok"}' '{"id":"b","say":"2 retry 1h later"}' '{"id":"c","say":"3 defer 1h shop is closed"}' \
    '{"id":"d","say":"4 dead no use"}' '{"id":"e","exit":75}' '{"id":"f"}' >/dev/null
ok 'log_wait 10 "event=dead queue=own id=d .*reason=answer answer=\"no use\""' 'N dead'
ok 'log_wait 15 "event=acked queue=own id=a "' 'N ok, although the status is 75'
ok 'log_wait 15 "event=retry queue=own id=b .*reason=answer delay=3600.* answer=later"' 'N retry'
ok 'log_wait 15 "event=deferred queue=own id=c .*delay=3600.*"' 'N defer'
ok 'log_wait 15 "event=retry queue=own id=e .*status=75 .*reason=exit"' 'the status speaks for the rest'
ok 'log_wait 15 "event=retry queue=own id=f .*status=75"' 'of them, all'
ok 'log_wait 15 "level=info event=acked queue=own pid=[0-9]+ batch=6 acked=1 status=75"' 'the record says how many are done'
ok 'log_wait 10 "level=debug event=acked queue=own id=f "' 'which run alone then'
is "$(r hget ownDELIVERY c | cut -d ' ' -f 1,2)" '0 0' 'a deferred one has no failure'

r lpush rest '{"id":1,"say":"2 ok"}' '{"id":2,"say":"dead all of them"}' '{"id":3}' >/dev/null
ok 'log_wait 10 "event=dead queue=rest " 2' 'a line without a number is for the rest'
log_wait 10 'event=acked queue=rest id='
is "$(log_lines 'event=acked queue=rest id=' | log_field id)" 2 'not for the one that has its own'

r lpush typo '{"id":1,"say":"1 okay"}' '{"id":2}' >/dev/null
ok 'log_wait 10 "event=retry queue=typo id=1 .*reason=protocol"' 'a typo fails its message'
ok 'log_wait 10 "event=acked queue=typo id=2 "' 'alone'
r lpush nobody '{"id":1,"say":"1 ok"}' '{"id":2,"say":"7 ok"}' '{"id":3}' >/dev/null
ok 'log_wait 10 "event=retry queue=nobody id=[23] .*reason=protocol" 2' 'a number that does not exist fails the rest'
log_wait 10 'event=acked queue=nobody id=1 '
is "$(log_count 'event=acked queue=nobody id=1 ')" 1 'and not what was done before'

r lpush early '{"id":1,"say":"1 ok","wait":1}' '{"id":2}' >/dev/null
ok 'log_wait 10 "event=acked queue=early id=1 "' 'N ok settles while the run goes on'
is "$(r hexists earlyCONTEXT 1) $(r hexists earlyCONTEXT 2)" '0 1' 'that message only'
is "$("$RQCTL" -c "$T/rqd.conf" cancel early 1 2>/dev/null; echo $?)" 1 'which cannot be cancelled any more'
touch "$T/say.go"
ok 'log_wait 10 "event=acked queue=early pid=[0-9]+ batch=2 status=0"' 'and counts with the run'
rm -f "$T/say.go"

# An ack that comes before the daemon has heard of the cancel is an ack.  It has heard of it
# when it renews the token after the mark.
redis-cli -s "$SOCK" monitor >"$T/monitor" 2>&1 & monitor=$!
wait_for 10 '[ -s "$T/monitor" ]'
HEARD='index($0, token) && /"HSET"/ && /!/ { marked = 1 }
marked && index($0, token) && tolower($0) ~ /"evalsha"/ { heard = 1 }
END { exit !heard }'
heard() {	# ID
	_token=$(r hget earlyDELIVERY "$1" | cut -d ' ' -f 3)
	_token=${_token##*:}
	wait_for 20 'awk -v token="$_token" "$HEARD" "$T/monitor"'
}
r lpush early '{"id":1,"wait":1}' '{"id":2}' '{"id":3}' >/dev/null
wait_for 10 '[ "$(r zcard earlyBACKUP)" = 3 ]'
ok '"$RQCTL" -c "$T/rqd.conf" cancel early 2' 'rqctl cancel of one of a batch'
heard 2
touch "$T/say.go"
ok 'log_wait 10 "event=cancelled queue=early id=2 "' 'and the result of that message is dropped'
ok 'log_wait 10 "event=acked queue=early pid=[0-9]+ batch=3 acked=2 status=0"' 'the run went on, and the others are done'
rm -f "$T/say.go"

r lpush early '{"id":21,"say":"1 ok"}' '{"id":22,"say":"2 ok","wait":1}' >/dev/null
ok 'log_wait 10 "event=acked queue=early id=2[12] " 2' 'all are done, and the run goes on'
wait_ok 10 '"$RQCTL" -c "$T/rqd.conf" running early |
    grep -q "^early  *-  *-  *[0-9.]*m*s  *[0-9]*  .* (all settled, runs on)$"' 'rqctl running shows it'
like "$("$RQCTL" -c "$T/rqd.conf" running early --json | tr -d '\n ')" \
    '^\[\{"queue":"early","age":[0-9.]+,"daemon":"[^"]+","pid":[0-9]+,"settled":true\}\]$' 'also in JSON'
touch "$T/say.go"
ok 'log_wait 10 "level=info event=acked queue=early pid=[0-9]+ batch=2 status=0" 2' 'until it ends'
wait_ok 10 '[ -z "$("$RQCTL" -c "$T/rqd.conf" running early 2>/dev/null)" ]' 'then no more'
rm -f "$T/say.go"

r lpush early '{"id":1,"wait":1}' '{"id":2}' >/dev/null
wait_for 10 '[ "$(r zcard earlyBACKUP)" = 2 ]'
"$RQCTL" -c "$T/rqd.conf" cancel --dead early 2 >/dev/null
heard 2
touch "$T/say.go"
ok 'log_wait 10 "event=dead queue=early id=2 .*status=0 .*reason=cancelled"' 'cancel --dead, though the run ends with 0'
rm -f "$T/say.go"
r lpush early '{"id":1,"wait":1}' '{"id":2,"say":"1 ok","hang":1}' >/dev/null
wait_for 10 '[ "$(r zcard earlyBACKUP)" = 2 ]'
"$RQCTL" -c "$T/rqd.conf" cancel early 2 >/dev/null
ok 'wait_for 10 "r hget earlyDELIVERY 2 | grep -q !drop"' 'one is cancelled while the run goes on'
heard 2
kill "$monitor"
touch "$T/say.go"
ok 'log_wait 15 "event=acked queue=early id=1 "' 'another one is done then'
ok 'log_wait 15 "event=cancelled queue=early id=2 " 2' 'and the run is ended: all that is left of it is cancelled'
ok 'log_wait 15 "event=acked queue=early pid=[0-9]+ batch=2 acked=1 signal=SIGTERM"' 'by SIGTERM'
rm -f "$T/say.go"

r lpush killed '{"id":1,"say":"1 ok"}' '{"id":2,"say":"2 dead","signal":9}' >/dev/null
ok 'log_wait 10 "event=retry queue=killed id=2 .*signal=SIGKILL"' 'after a signal a verdict does not count'
ok 'log_wait 10 "event=acked queue=killed id=1 "' 'but N ok does'
r lpush stopped '{"id":1}' '{"id":2}' >/dev/null
ok 'log_wait 10 "event=retry queue=stopped id=2 .*reason=timeout"' 'nor after time_limit'
log_wait 10 'event=acked queue=stopped id=1 '
is "$(log_count 'event=acked queue=stopped id=1 ')" 1 'N ok does'
r lpush push '{"id":1,"say":"1 push next x"}' '{"id":2,"say":"2 push other x"}' '{"id":3,"say":"3 push next y"}' >/dev/null
ok 'log_wait 10 "event=retry queue=push id=2 .*reason=pushes"' 'N push to a queue that pushes does not list'
wait_ok 10 '[ "$(r llen next)" = 2 ]' 'N push goes with the ack of N'
r del next >/dev/null
r lpush late '{"id":1,"say":"1 ok"}' '{"id":2,"say":"1 push next x"}' '{"id":3}' >/dev/null
ok 'log_wait 10 "event=retry queue=late id=[23] .*reason=protocol" 2' 'a push after N ok fails the rest'
ok 'log_wait 15 "event=warning queue=late .*batch=3 .*acknowledged already: 1 push next x"' 'and a record tells of it'
log_wait 10 'event=acked queue=late id=1 '
is "$(log_count 'event=acked queue=late id=1 ') $(r llen next)" '1 0' 'N is done, and pushed nothing'
r lpush late '{"id":4,"say":"1 ok"}' '{"id":5,"say":"2 ok"}' '{"id":6,"say":"3 ok"}' '{"id":7,"say":"4 ok"}' \
    '{"id":8,"say":"5 ok"}' >/dev/null
ok 'log_wait 10 "event=acked queue=late pid=[0-9]+ batch=5 status=0"' 'all say N ok'
is "$(log_count 'event=warning queue=late ')" 1 'which is no fault'

r lpush fat $(seq 20) >/dev/null
ok 'log_wait 20 "event=retry queue=fat .*reason=pushes .*more than 16777216 bytes" 4' 'a run hands over 16 MiB at most'
ok 'log_wait 10 "level=debug event=acked queue=fat id=" 16' 'what is beyond fails alone'
is "$(r llen next)" 16 'the others are pushed'
r del next fatRETRY fatCONTEXT fatDELIVERY >/dev/null
r lpush owes $(seq 40) >/dev/null
log_wait 10 'event=delivered queue=owes ' 40
r config set maxmemory 1 >/dev/null
: >"$T/owe"
ok 'log_wait 20 "event=output queue=owes .*line=answered-16"' 'while Redis is full a run acknowledges 16 MiB'
ok 'log_wait 10 "event=warning queue=owes .*OOM"' 'that Redis does not take'
ok '[ "$(log_count "event=output queue=owes .*line=answered-")" -le 20 ]' 'and waits then'
r config set maxmemory 0 >/dev/null
ok 'log_wait 30 "event=acked queue=owes .*batch=40 "' 'until Redis takes them'
is "$(r llen next)" 40 'and nothing is lost'
r del next >/dev/null

# -- programs that take lines ----------------------------------------------------------

rqd_stop
r flushall >/dev/null
# As psql -qc 'COPY clicks FROM STDIN' does, it takes all lines or none; no server is needed.
handler psql <<'H'
[ "$1 $2" = "-qc COPY clicks FROM STDIN" ] || exit 2
cat >"$T/copy.$$"
awk -F '\t' 'NF != 2 { print "ERROR: missing data, line " NR >"/dev/stderr"; bad = 1 } END { exit bad }' "$T/copy.$$" ||
	exit 1
cat "$T/copy.$$" >>"$T/clicks"
H
handler resize <<'H'
for name; do echo "$name" >>"$T/resized"; done
H
SQLITE=$(command -v sqlite3)
[ -z "$SQLITE" ] || sqlite3 "$T/clicks.db" 'CREATE TABLE clicks (id TEXT PRIMARY KEY, page TEXT)'
rqd_start <<C
defaults { batch = 100 framing = "raw" max_attempts = 2 backoff = 100ms $AS }
queue "copy" { command = {"$T/psql", "-qc", "COPY clicks FROM STDIN"} }
queue "xargs" { command = {"$(command -v xargs)", "-d", "\n", "-n", "10", "$T/resize"} }
queue "sqlite" { command = {"${SQLITE:-/bin/true}", "-csv", "-bail", "$T/clicks.db", "BEGIN", ".import /dev/stdin clicks", "COMMIT"} }
C
r eval 'for i = 1, 100 do
	redis.call("LPUSH", KEYS[1], i == 61 and "no column" or i .. "\tpage")
end' 1 copy >/dev/null
wait_ok 30 'empty copy' 'COPY: a hundred rows, one of them bad'
is "$(sort -n "$T/clicks" | cut -f 1 | tr '\n' ' ')" "$(seq 100 | sed 61d | tr '\n' ' ')" 'each good row is there once'
like "$(r --raw xrange copyDEAD - + | tr '\n' ' ')" 'no column.*missing data' 'the bad one is a dead letter, which says why'
r lpush xargs $(seq 95) 'a file with blanks' >/dev/null
wait_ok 30 'empty xargs' 'xargs: a hundred names'
is "$(sort "$T/resized" | cksum)" "$({ seq 95; echo 'a file with blanks'; } | sort | cksum)" 'each once'
r lpush sqlite $(seq 30 | sed 's/.*/&,page/') '7,twice' >/dev/null
wait_ok 30 'empty sqlite' '.import of SQLite in a transaction'
[ -z "$SQLITE" ] || is "$(sqlite3 "$T/clicks.db" 'SELECT count(*), count(DISTINCT id) FROM clicks')" '30|30' 'each id once'
[ -z "$SQLITE" ] || is "$(r xlen sqliteDEAD)" 1 'the second one of an id is a dead letter'

# -- by hand ---------------------------------------------------------------------------

handler try <<'H'
echo "$RQD_BATCH ${RQD_ID-none}"
cat
H
config_write try <<C
queue "try" { command = {"$T/try"} batch = 20 }
queue "tryraw" { command = {"$T/try"} batch = 20 framing = "raw" }
C
is "$(printf '{"id":7}' | "$RQCTL" -c "$T/try.conf" try try 2>/dev/null)" '1 none
1 1 8 7
{"id":7}' 'rqctl try frames the message as a batch of one'
printf 'a\nb' | "$RQCTL" -c "$T/try.conf" try tryraw >/dev/null 2>"$T/err"
is $? 65 'and says that one cannot be framed'
like "$(cat "$T/err")" 'unframeable' 'in words'

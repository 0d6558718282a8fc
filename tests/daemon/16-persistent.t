#!/bin/sh
# Persistent handlers in shell, Python and C: processes that get many messages, their
# mistakes, and their deaths.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

PYTHON=$(command -v python3) || skip_all 'no python3'

# Pushes messages {"id":FROM} to {"id":TO}.
push() {	# QUEUE FROM TO
	seq "$2" "$3" | sed "s/.*/LPUSH $1 '{\"id\":&}'/" | r >/dev/null
}

# Waits until a queue has nothing in any state.
empty() {	# QUEUE
	[ "$(r eval 'local n = redis.call("LLEN", KEYS[1])
	    for i = 2, 4 do n = n + redis.call(i == 4 and "HLEN" or "ZCARD", KEYS[i]) end
	    return n' 4 "$1" "$1BACKUP" "$1RETRY" "$1CONTEXT")" = 0 ]
}

# How many different ids a file has, and how many lines.
distinct() { sort -u "$1" 2>/dev/null | wc -l | tr -d ' '; }
lines() { wc -l <"$1" | tr -d ' '; }

# -- three languages -------------------------------------------------------------

redis_start
handler sh.sh <<'H'
while read -r n attempt length id && IFS= read -r message; do
	[ "${#message}" -eq "$length" ] || exit 9
	echo "$id $attempt" >>"$T/sh.done"
	echo "$n ok"
done
H
# Answers all messages of one read together, the newest first.
cat >"$T/py.py" <<P
import os, re
out = open("$T/py.done", "ab", buffering=0)
have = b""
while chunk := os.read(0, 65536):
    have += chunk
    answers = []
    while head := re.match(rb"(\d+) (\d+) (\d+) (.*)\n", have):
        end = head.end() + int(head[3])
        if len(have) <= end:
            break
        assert have[end:end + 1] == b"\n"
        out.write(head[4] + b" " + head[2] + b"\n")
        answers.insert(0, head[1] + b" ok\n")
        have = have[end + 1:]
    os.write(1, b"".join(answers))
P
rqd_start <<C
log { level = "info" }
queue "sh" { command = {"$T/sh.sh"} mode = "persistent" framing = "line" concurrency = 3 pipeline = 4 }
queue "py" { command = {"$PYTHON", "$T/py.py"} mode = "persistent" concurrency = 2 pipeline = 64 }
queue "c" { command = {"$BUILDDIR/tests/helpers/persist", "$T/c.done"} mode = "persistent" concurrency = 2 pipeline = 32 }
queue "frame" { command = {"$T/sh.sh"} mode = "persistent" framing = "line" }
C
for q in sh py c; do push $q 1 2000; done
for q in sh py c; do
	wait_ok 60 "empty $q" "$q: all messages are done"
	is "$(distinct "$T/$q.done") $(lines "$T/$q.done")" '2000 2000' "$q: each once"
	log_wait 20 "event=acked queue=$q " 2000
	is "$(log_count "event=acked queue=$q ")" 2000 "$q: each is in the log"
	like "$(log_lines "event=acked queue=$q id=77 ")" \
	    'level=info event=acked queue=[a-z]* id=77 attempt=1 pid=[0-9]+ duration=[0-9.]+$' "$q: as it should be"
	ok "[ \$(log_count 'event=handler_started queue=$q ') -le 3 ]" "$q: with few processes"
done
r lpush frame "$(printf 'two\nlines')" >/dev/null
wait_ok 10 '[ "$(r xlen frameDEAD)" = 1 ]' 'a newline cannot be framed by lines'
like "$(r xrange frameDEAD - +)" 'unframeable' 'and that is the reason'
rqd_stop
is "$(log_count 'event=handler_exited .*status=0 .*reason=closed')" \
    "$(log_count 'event=handler_started')" 'all processes end by the end of their input'

# -- a command that cannot work, and one that can again --------------------------------

handler broken <<'H'
echo 'I cannot start' >&2
exit 3
H
push broken 1 40
rqd_start broken <<C
log { level = "info" }
queue "broken" {
	command = {"$T/broken"} mode = "persistent" framing = "line" pipeline = 4
	suspend_after = 3 backoff = 10ms
}
C
log_wait 30 'event=suspended queue=broken .*reason=failing' 1 broken
# The third is logged once Redis has it.
log_wait 10 'event=retry queue=broken .*status=3 .*reason=exit' 3 broken
# By the log: a probe may have begun the fourth by now.
is "$(sed '/event=suspended queue=broken/q' "$T/broken.log" | grep -c 'event=handler_exited queue=broken ')" 3 \
    'three failures in a row suspend the queue'
is "$(sed '/event=suspended queue=broken/q' "$T/broken.log" | grep -c 'event=handler_started queue=broken ')" 3 \
    'with as many processes'
handler broken <<'H'
while read -r n attempt length id && IFS= read -r message; do echo "$n ok"; done
H
wait_ok 60 'empty broken' 'mended, it resumes and does all'
log_wait 10 'event=resumed queue=broken ' 1 broken
is "$(log_count 'event=dead' broken)" 0 'nothing became a dead letter'
rqd_stop broken

# A verdict on messages says nothing about the command; a failure may say something.
handler picky <<'H'
while read -r n attempt length id && IFS= read -r message; do echo "$n $message"; done
H
for i in 1 2 3 4 5 6; do r lpush picky "dead $i" >/dev/null; done
rqd_start picky <<C
queue "picky" {
	command = {"$T/picky"} mode = "persistent" framing = "line"
	suspend_after = 3 backoff = 1m
}
C
log_wait 20 'event=dead queue=picky ' 6 picky
is "$(log_count 'event=suspended' picky)" 0 'dead letters do not suspend the queue'
for i in 1 2 3; do r lpush picky "retry later" >/dev/null; done
wait_ok 20 "log_wait 20 'event=suspended queue=picky' 1 picky" 'failures do'
rqd_stop picky
r del pickyRETRY pickyCONTEXT pickyDELIVERY >/dev/null

# -- beside others ------------------------------------------------------------------------

# Persistent processes take none of max_handlers' slots, and idle ones stay.
handler slow <<'H'
while read -r n attempt length id && IFS= read -r message; do
	echo "$id" >>"$T/slow.begun"
	while [ ! -e "$T/go" ]; do sleep 0.2; done
	echo "$n ok"
done
H
push slow 1 6
rqd_start slots <<C
max_handlers = 1
queue "slow" { command = {"$T/slow"} mode = "persistent" framing = "line" concurrency = 3 pipeline = 2 }
queue "quick" { command = {"/bin/true"} }
C
wait_ok 20 '[ "$(grep -c . "$T/slow.begun")" = 3 ]' 'three processes have a message each'
r lpush quick x >/dev/null
wait_ok 20 'log_wait 20 "event=acked queue=quick " 1 slots' 'and another queue runs beside them'
wait_ok 20 '[ "$(r zcard slowBACKUP)" = 6 ]' 'each has another in its pipeline'
wait_ok 20 'ctl running slow | grep -q " [0-9][0-9]* "' 'rqctl running knows the processes'
: >"$T/go"
wait_ok 20 'empty slow' 'all are done'
push slow 7 9
wait_ok 20 'empty slow' 'and those that come later'
is "$(log_count 'event=handler_started queue=slow' slots)" 3 'by the same processes'
rqd_stop slots

# -- by hand ------------------------------------------------------------------------------

handler word <<'H'
while read -r n attempt length id && IFS= read -r message; do
	echo "got $message" >&2
	echo "$n $message"
done
H
config_write try <<C
queue "q" { command = {"$T/word"} mode = "persistent" framing = "line" }
C
try() {	# MESSAGE: what rqctl says, then its status
	printf %s "$1" | "$RQCTL" -c "$T/try.conf" try q 2>&1
	echo "$?"
}
like "$(try ok)" 'got ok' 'rqctl try: what it prints'
like "$(try ok | tail -n 2 | tr '\n' ' ')" 'would be acked 0 $' 'rqctl try: ok'
like "$(try 'retry 7' | tail -n 2 | tr '\n' ' ')" 'answered retry .*in 7s 75 $' 'rqctl try: retry'
like "$(try 'defer 5m shut' | tail -n 2 | tr '\n' ' ')" 'answered defer \(shut\) .*deferred for 5m 75 $' 'rqctl try: defer'
like "$(try 'dead no use' | tail -n 2 | tr '\n' ' ')" 'answered dead .*dead letter: answer 65 $' 'rqctl try: dead'
like "$(try 'what' | tail -n 2 | tr '\n' ' ')" 'broke the protocol \(not an answer: 1 what\).* 75 $' 'rqctl try: garbage'
like "$(printf 'a\nb' | "$RQCTL" -c "$T/try.conf" try q 2>&1; echo $?)" 'cannot be framed.*unframeable' 'rqctl try: two lines'

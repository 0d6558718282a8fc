#!/bin/sh
# Persistent handlers: processes that are fed many messages, in shell, Python and C;
# what they may do wrong, and who dies in the middle of it.

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
# What one read brings is answered together, the youngest first.
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

#!/bin/bash
# How many script calls and commands rqd sends to Redis in ordinary events: upper bounds.
# A change that raises one says why.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

needs_speed
redis_start
handler fine <<'H'
exit 0
H
handler once <<'H'
[ "$RQD_ATTEMPT" -gt 1 ]
H
handler push <<'H'
echo 'push ack child' >&3
H
handler slow <<'H'
exec sleep 60
H
rqd_start <<C
defaults { $AS command = {"$T/fine"} concurrency = 8 backoff = 100ms backoff_max = 100ms }
queue "ack" { }
queue "retry" { command = {"$T/once"} }
queue "unique" { kind = "unique" key = "unique" }
queue "stream" { kind = "stream" }
queue "list" { kind = "list" }
queue "push" { command = {"$T/push"} pushes = {"ack"} }
queue "slow" { command = {"$T/slow"} }
C
log_wait 30 event=redis_up

scripts() { r info commandstats | sed -n 's/^cmdstat_eval[sha]*:calls=\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n + 0 }'; }
commands() {	# but for those of this test
	r info commandstats | sed -n 's/^cmdstat_\([^:]*\):calls=\([0-9]*\).*/\1 \2/p' |
	    awk '$1 != "info" && $1 !~ /^config/ && $1 != "ping" { n += $2 } END { print n }'
}
# Waits until nothing is sent for a third of a second.
quiet() {
	_last=''
	until [ "$(scripts)" = "$_last" ]; do
		_last=$(scripts)
		sleep 0.33
	done
}

# Runs a command, and waits until so many records of that event are in the log and Redis is
# quiet.  At most so many scripts and commands may come: `mine` of them are this test's.
# Something periodic may come in between, and beside other tests fewer results go together: so
# it may take ten runs until one stays within the bound.
bound() {	# DESCRIPTION SCRIPTS COMMANDS MINE REGEX COUNT COMMAND
	_s=999999 _c=999999
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		quiet
		_s0=$(scripts) _c0=$(commands) _n=$(log_count "$5")
		eval "$7"
		log_wait 30 "$5" $((_n + $6)) || break
		quiet
		_s1=$(($(scripts) - _s0)) _c1=$(($(commands) - _c0 - $4))
		[ "$_s1" -lt "$_s" ] && _s=$_s1
		[ "$_c1" -lt "$_c" ] && _c=$_c1
		[ $_s -le $2 ] && [ $_c -le $3 ] && break
	done
	note "$1: $_s scripts, $_c commands"
	ok "[ $_s -le $2 ] && [ $_c -le $3 ]" "$1: at most $2 scripts and $3 commands"
}

bound 'an isolated message' 4 40 1 'event=acked queue=ack ' 1 'r lpush ack x >/dev/null'
bound '64 messages at once' 64 800 1 'event=acked queue=ack ' 64 'r lpush ack $(seq 64) >/dev/null'
bound 'a message that fails once' 8 95 1 'event=acked queue=retry ' 1 'r lpush retry x >/dev/null'
bound 'a delayed message' 6 105 1 'event=acked queue=ack ' 1 \
    'r zadd ackDELAYED $(($(date +%s) + 1)) x >/dev/null'
bound 'an id of kind unique' 5 62 1 'event=acked queue=unique ' 1 'r zadd unique 0 x >/dev/null'
bound 'an entry of a stream' 4 50 1 'event=acked queue=stream ' 1 'r xadd stream \* message x >/dev/null'
bound 'an element of a list' 4 18 1 'event=acked queue=list ' 1 'r lpush list x >/dev/null'
bound 'a message that pushes another' 7 82 1 'event=acked queue=ack ' 1 'r lpush push x >/dev/null'
head -c 16000000 /dev/zero | tr '\0' x >"$T/large"
bound 'a message of 16 MB' 5 44 1 'event=acked queue=ack ' 1 'redis-cli -s "$SOCK" -x lpush ack <"$T/large" >/dev/null'
# The verb's own scripts count, too.
bound 'a message that is cancelled as it runs' 6 75 1 'event=cancelled queue=slow ' 1 \
    'r lpush slow "{\"id\":1}" >/dev/null; wait_for 10 "[ \$(r hlen slowCONTEXT) -eq 1 ]"; ctl cancel slow 1 >/dev/null'
bound 'a connection that is cut' 32 420 1 event=redis_up 1 'r client kill type normal skipme yes >/dev/null'
bound 'five idle seconds' 2 20 0 . 0 'sleep 5'

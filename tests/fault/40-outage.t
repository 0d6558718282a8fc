#!/bin/sh
# Redis is away for longer than the lease, once stopped and once killed, while two
# daemons have handlers running.  When it is back all leases look expired, but
# each daemon renews its own before the other may take them: the handlers' results
# are acknowledged, and nothing runs again.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

aof='--appendonly yes --appendfsync always'
redis_start $aof
handler work <<'H'
echo "$RQD_ID" >>"$T/ran"
while [ -e "$T/hold.${RQD_ID%.*}" ]; do sleep 0.2; done
case $RQD_ID in *.bad) exit 65 ;; esac
H
for d in a b; do
	rqd_start $d <<C
redis { server = "unix:$SOCK" timeout = 2s }
queue "q" { command = {"$T/work"} concurrency = 4 lease = 6s max_attempts = 1 }
C
	log_wait 30 event=redis_up 1 $d
done
both() { cat "$T/a.log" "$T/b.log"; }
outcomes() { both | grep -cE "event=(acked|dead) queue=q id=$1"; }

push() {	# NAME: eight messages, and all slots of both daemons are taken
	touch "$T/hold.$1"
	for i in 1 2 3 4 5 6 7; do r lpush q "{\"id\":\"$1.$i\"}" >/dev/null; done
	r lpush q "{\"id\":\"$1.bad\"}" >/dev/null
	wait_ok 30 "[ \"\$(grep -c '^$1' '$T/ran')\" -eq 8 ]" "$1: eight handlers run"
}

settled() {	# NAME
	wait_ok 60 "[ \"\$(outcomes '$1')\" -eq 8 ]" "$1: their results are acknowledged"
	is "$(grep "^$1" "$T/ran" | sort | uniq -d | tr '\n' ' ')" '' "$1: none ran again"
}

push stopped
kill -STOP "$REDIS_PID"
sleep 8
kill -CONT "$REDIS_PID"
wait_ok 60 '[ "$(log_count event=redis_up a)" -ge 2 ] && [ "$(log_count event=redis_up b)" -ge 2 ]' \
    'both are back'
sleep 5		# others' leases may be taken from now on
rm "$T/hold.stopped"
settled stopped

# Here the handlers end while there is nobody to tell.
push killed
redis_stop KILL
sleep 4
rm "$T/hold.killed"
sleep 4
redis_start $aof
settled killed
is "$(both | grep -c event=requeued)" 0 'no lease was taken'
is "$(r exists qBACKUP qRETRY qCONTEXT qDELIVERY)" 0 'nothing is left'
is "$(r xlen qDEAD)" 2 'the two that failed are dead letters'

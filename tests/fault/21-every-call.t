#!/bin/sh
# One fault at each call that rqd makes to Redis: a lost request, a lost or late reply,
# and each error that Redis knows, before the call's work or after it.  Nothing is lost,
# nothing runs twice, and nothing waits for the end of a lease.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v python3 >/dev/null || skip_all 'no python3'
redis_start
handler work <<'H'
read -r name
name=${name#*:\"}
name=${name%%\"*}
echo "$name" >>"$T/runs.$RQD_QUEUE"
case $name.$RQD_ATTEMPT in *r.1) exit 1 ;; esac
exit 0
H
step=7
[ -z "$RQD_TEST_LONG" ] || step=3

# A daemon and a proxy for each kind, at the same time.
for kind in ack unique stream; do
	: >"$T/runs.$kind"
	mkfifo "$T/go.$kind"
	python3 "$SRCDIR/tests/fault/every_call.py" "$T/$kind.sock" "$SOCK" "$T/runs.$kind" $step $kind \
	    <"$T/go.$kind" >"$T/said.$kind" 2>&1 &
	eval "judge_$kind=$!"
	OTHER_PIDS="$OTHER_PIDS $!"
done
exec 4>"$T/go.ack" 5>"$T/go.unique" 6>"$T/go.stream"
for kind in ack unique stream; do
	wait_for 10 '[ -S "$T/$kind.sock" ]'
	rqd_start $kind <<C
redis { server = "unix:$T/$kind.sock" timeout = 2s }
queue "$kind" {
	kind = "$kind" key = "$kind" command = {"$T/work"} concurrency = 2 lease = 60s
	backoff = 250ms backoff_max = 250ms
}
C
	log_wait 30 event=redis_up 1 $kind
done
echo >&4
echo >&5
echo >&6
exec 4>&- 5>&- 6>&-
for kind in ack unique stream; do
	eval "wait \$judge_$kind"
	is $? 0 "$kind: the judge came to an end"
	while read -r line; do
		case $line in
		'ok '*) pass "${line#* - }" ;;
		'not ok '*) fail "${line#* - }" ;;
		*) echo "$line" ;;
		esac
	done <"$T/said.$kind"
done

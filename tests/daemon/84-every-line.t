#!/bin/sh
# Every result line of a handler in every kind of queue and every mode: the outcome is that of
# rqd-handler(7), and the daemon lives.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start --notify-keyspace-events Ex

# A message's first run writes the lines of $T/lines, and its next one only what it has got.
handler exec <<'H'
cat >/dev/null
if mkdir "$T/ran.$RQD_QUEUE" 2>/dev/null; then
	sed "s/^/${RQD_BATCH:+1 }/" "$T/lines" >&3
else
	echo "${RQD_SAVED-none}" >"$T/again.$RQD_QUEUE"
fi
H
handler bare <<'H'
cat >/dev/null
! mkdir "$T/ran.$RQD_QUEUE" 2>/dev/null || cat "$T/lines" >&3
H
handler persistent <<'H'
saved=none
while read -r n attempt rest; do
	[ "$attempt" != saved ] || { saved=$rest; continue; }
	IFS= read -r message
	if mkdir "$T/ran.$RQD_QUEUE" 2>/dev/null; then
		sed "s/^/$n /" "$T/lines"
		case $(tail -n 1 "$T/lines") in
		progress* | save* | push*) echo "$n ok" ;;
		esac
	else
		echo "$saved" >"$T/again.$RQD_QUEUE"
		echo "$n ok"
	fi
	saved=none
done
H

KINDS='ack unique stream expired list channel pattern'
queue() {	# NAME KIND MODE HANDLER [OPTION...]
	_name=$1 _kind=$2 _mode=$3 _handler=$4
	shift 4
	case $_kind in
	unique) set -- "key = \"$_name\"" "$@" ;;
	channel) set -- "key = \"to-$_name\"" "$@" ;;
	pattern) set -- "key = \"to-$_name*\"" "$@" ;;
	expired) set -- "match = \"m-$_name:*\" skew = 1s" "$@" ;;
	esac
	echo "queue \"$_name\" { kind = \"$_kind\" mode = \"$_mode\" command = {\"$T/$_handler\"} $* }"
	ALL="$ALL $_name"
}
send() {	# QUEUE NUMBER
	case $1 in
	*-unique) echo "zadd $1 1 $2" ;;
	*-stream) echo "xadd $1 * message x$2" ;;
	*-expired) echo "set m-$1:$2 x px 1" ;;
	*-channel | *-pattern) echo "publish to-$1 x$2" ;;
	*) echo "lpush $1 x$2" ;;
	esac
}
ALL=''
{
	echo "defaults { $AS suspend_after = 0 pushes = {\"sink\"} backoff = 1h }"
	echo 'queue "sink" { concurrency = 0 }'
	for kind in $KINDS; do
		queue "exec-$kind" "$kind" exec exec
		queue "says-$kind" "$kind" persistent persistent 'framing = "line"'
	done
	for kind in ack unique stream expired; do
		queue "batch-$kind" "$kind" exec exec 'batch = 2'
		queue "bare-$kind" "$kind" exec bare 'batch = 2'
	done
	queue groups-ack ack exec exec 'group_by = "/"'
	queue says-groups-ack ack persistent persistent 'framing = "line" group_by = "/"'
} >"$T/start"
rqd_start <"$T/start"
BEGAN=$(pid_of)
subscribed=$(grep -cE 'kind = "(expired|channel|pattern)"' "$T/rqd.conf")
log_wait 20 'event=subscribed ' "$subscribed"

# Writes "QUEUE EVENT REASON" of each queue's first outcome since SEEN to $T/got, sorted.
outcomes() {
	tail -n "+$((SEEN + 1))" "$T/rqd.log" | awk '
	/ event=(acked|retry|deferred|held|held_group|dead|failed|dropped|returned|stale) queue=[^ ]* id=/ {
		reason = ""
		for (i = 1; i <= NF; i++) {
			if ($i ~ /^event=/) event = substr($i, 7)
			if ($i ~ /^queue=/) queue = substr($i, 7)
			if ($i ~ /^reason=/) reason = " " substr($i, 8)
		}
		if (!(queue in seen))
			print queue, event reason
		seen[queue] = 1
	}' | sort >"$T/got"
}
all_have() { outcomes; [ "$(wc -l <"$T/got")" -eq "$QUEUES_N" ]; }
again() { [ "$(find "$T" -name 'again.*' | wc -l)" -eq "$1" ]; }
# shellcheck disable=SC2086
QUEUES_N=$(printf '%s\n' $ALL | wc -l)
N=0

# Sends one message to each queue, and compares all outcomes.
lines() {	# TEXT LEASED OTHERS [PATTERN=OUTCOME]...
	_lines=$1 _leased=$2 _others=$3
	shift 3
	N=$((N + 1))
	rm -rf "$T"/ran.* "$T"/again.*
	printf '%b\n' "$_lines" >"$T/lines"
	SEEN=$(wc -l <"$T/rqd.log")
	for _q in $ALL; do send "$_q" $N; done | redis-cli -s "$SOCK" >/dev/null
	for _q in $ALL; do
		case $_q in *-list | *-channel | *-pattern) _want=$_others ;; *) _want=$_leased ;; esac
		for _other; do
			# shellcheck disable=SC2254
			case $_q in ${_other%%=*}) _want=${_other#*=} ;; esac
		done
		echo "$_q $_want"
	done | sort >"$T/want"
	wait_for 60 'all_have || ! is_child "$PID"'
	is_child "$PID" || { fail "$_lines: the daemon has ended"; exit 1; }
	if cmp -s "$T/want" "$T/got"; then pass "$_lines"; else
		fail "$_lines"
		diff "$T/want" "$T/got" | sed 's/^/# /'
	fi
	[ "$AGAIN" -eq 0 ] || wait_for 30 'again "$AGAIN"'
	[ "$AGAIN" -eq 0 ] || cat "$T"/again.* | sort | uniq -c >"$T/saved"
	for _q in $ALL; do
		# A stream's entries would be taken over later.
		echo "del $_q ${_q}PAUSED ${_q}RETRY ${_q}CONTEXT ${_q}DELIVERY ${_q}GROUP ${_q}ORDER ${_q}HELD ${_q}DEAD"
	done | redis-cli -s "$SOCK" >/dev/null
}
AGAIN=0
WRONG='retry protocol'

lines ok acked acked
lines 'dead x\nok' acked acked 'says-*=dead answer' 'says-list=failed answer' 'says-channel=failed answer' 'says-pattern=failed answer'
lines 'ok why' "$WRONG" 'failed protocol'
lines retry 'retry answer' 'failed answer'
lines 'retry why' 'retry answer' 'failed answer'
lines 'retry 1h' 'retry answer' 'failed answer'
lines 'retry 1h why' 'retry answer' 'failed answer'
lines 'retry - 404 x' 'retry answer' 'failed answer'
lines 'retry 404x' "$WRONG" 'failed protocol'
lines 'defer 1h' 'deferred answer' 'failed protocol'
lines 'defer 3600 why' 'deferred answer' 'failed protocol'
lines 'defer 1h\r' 'deferred answer' 'failed protocol'
lines 'ok\r' acked acked
lines 'dead why\r' 'dead answer' 'failed answer'
lines defer "$WRONG" 'failed protocol'
lines dead 'dead answer' 'failed answer'
lines 'dead why' 'dead answer' 'failed answer'
lines progress acked acked
lines 'progress 1/2' acked acked
lines save acked 'failed protocol' 'ba*=retry protocol'
lines 'save x' acked 'failed protocol' 'ba*=retry protocol'
lines 'push sink x' acked 'failed pushes' 'bare-*=retry protocol'
lines 'push nowhere x' 'retry pushes' 'failed pushes' 'bare-*=retry protocol'
lines push "$WRONG" 'failed protocol'
lines 'hold 1h' 'held answer' 'failed protocol'
lines 'hold 1h why' 'held answer' 'failed protocol'
lines hold "$WRONG" 'failed protocol'
lines 'hold group 1h why' "$WRONG" 'failed protocol' '*groups-*=held_group answer'
lines 'hold group' "$WRONG" 'failed protocol'
lines 'seva x' "$WRONG" 'failed protocol'
lines '' "$WRONG" 'failed protocol'
AGAIN=10
lines 'save x\nretry 100ms' 'retry answer' 'failed protocol' 'ba*=retry protocol'
like "$(cat "$T/saved")" '^ *10 x$' 'each kind with leases and each mode saves'

is "$(log_count 'event=started')" 1 'the daemon was started once'
ok "is_child '$BEGAN'" 'and lives'
rqd_stop

#!/bin/sh
# A daemon is stopped (SIGSTOP, a suspended machine) after Redis has run its pop and before
# it has read the reply.  When it goes on, the messages of that reply may be another
# daemon's: it starts no handler for them.  What is still its own it runs.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
proxy_start
handler work <<'H'
name=$(grep -aoE '(soon|quick|held|after)[0-9]+')
echo "$1 $RQD_QUEUE $name" >>"$T/runs"
case $name in held* | after*) while [ ! -e "$T/go" ]; do sleep 0.1; done ;; esac
exit 0
H
# A new daemon that has looked at its queues, and has all its slots free: then one pop of
# each queue takes what is pushed.
start() {	# SOCKET NAME WORD KIND...
	_n=$2
	{
		echo "redis { server = \"unix:$1\" }"
		echo "defaults { $AS command = {\"$T/work\", \"$3\"} concurrency = 4 lease = 3s }"
		shift 3
		for _kind; do echo "queue \"$_kind\" { kind = \"$_kind\" key = \"$_kind\" }"; done
	} >"$T/text"
	rqd_start "$_n" <"$T/text"
	log_wait 20 event=redis_up 1 "$_n"
	until _n=$(calls) && sleep 0.2 && [ "$_n" = "$(calls)" ]; do :; done
}
calls() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\).*/\1/p'; }
push() {	# NAME...: to each queue, in one step
	r eval 'for _, name in ipairs(ARGV) do
		redis.call("LPUSH", KEYS[1], string.format("{\"id\":\"%s\"}", name))
		redis.call("ZADD", KEYS[2], 0, name)
		redis.call("XADD", KEYS[3], "*", "message", name)
	end' 3 ack unique stream "$@" >/dev/null
}
no_messages() { [ "$(taken)" = '0 0 0 ' ] && [ "$(r llen ack) $(r zcard unique)" = '0 0' ]; }
taken() { for k in $KINDS; do r zcard ${k}BACKUP; done | tr '\n' ' '; }
runs() { grep -cE "^$1 [a-z]* ($2)[0-9]" "$T/runs"; }	# DAEMON NAMES
: >"$T/runs"
KINDS='ack unique stream'
# A daemon for each kind: on one connection, a reply that is held would hold the others.
each() { for _k in $KINDS; do eval "$1"; done; }
# -- for a moment ---------------------------------------------------------------------
each 'start "$T/proxy.sock" brief_$_k brief $_k'
echo hold soon >&3
push soon1 soon2
wait_ok 10 '[ "$(taken)" = "2 2 2 " ]' 'Redis has run the pops'
each 'rqd_signal STOP brief_$_k'
echo release >&3
each 'rqd_signal CONT brief_$_k'
wait_ok 10 '[ "$(runs brief soon)" -eq 6 ] && no_messages' 'stopped for a moment: the daemon runs what it took'
each 'rqd_stop brief_$_k'

# -- for longer than the lease ----------------------------------------------------------
each 'start "$T/proxy.sock" first_$_k first $_k'
echo hold held >&3
push held1 held2 quick3 held4
wait_ok 10 '[ "$(taken)" = "4 4 4 " ]' 'Redis has run the pops'
each 'rqd_signal STOP first_$_k'
is "$(runs first 'held|quick')" 0 'the replies are on their way'
start "$SOCK" second second $KINDS
wait_ok 30 '[ "$(runs second "held|quick")" -eq 12 ]' 'stopped for longer: another daemon runs them when the lease is over'
echo release >&3
each 'rqd_signal CONT first_$_k'
# The first daemon has four slots for each queue, the second one.
push after1 after2 after3 after4 after5
wait_ok 20 '[ "$(runs ".*" after)" -eq 15 ]' 'each slot takes another message'
is "$(runs first after) $(runs first 'held|quick')" '12 0' 'the first daemon starts no handler for those of the second'
touch "$T/go"
wait_ok 20 'no_messages' 'all are settled'
is "$(runs '.*' 'held|quick')" 12 'and no other run was begun'
is "$(log_count 'event=(stale|failed|dead)' second)" 0 'nobody took them from the second daemon'

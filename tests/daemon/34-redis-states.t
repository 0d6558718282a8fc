#!/bin/sh
# A Redis that refuses: a password that has changed, too many clients, a replica, no
# memory left, no tracking, a policy that loses keys.  rqd reports each once, loses
# nothing, and goes on when it is over.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

REDISCLI_AUTH=s3cret
export REDISCLI_AUTH
redis_start --maxmemory-policy allkeys-lru --requirepass s3cret
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/ran"
while [ -e "$T/hold.$RQD_ID" ]; do sleep 0.2; done
H
: >"$T/ran"
echo s3cret >"$T/password"
rqd_start <<C
redis { server = "unix:$SOCK" timeout = 10s password_file = "$T/password" }
queue "q" { command = {"$T/work"} concurrency = 2 }
C
log_wait 10 event=redis_up
ok 'log_wait 15 "level=warn event=redis_warning maxmemory_policy=allkeys-lru warning="' 'a policy that evicts is warned of'
r config set maxmemory-policy noeviction >/dev/null
push() { r lpush q "{\"id\":\"$1\"}" >/dev/null; }

# A message is in flight when it begins, and another one comes meanwhile.
trouble() {	# NAME BEGIN END CAUSE
	ups=$(log_count event=redis_up)
	touch "$T/hold.$1-1"
	push "$1-1"
	wait_for 10 "grep -q '^$1-1 ' '$T/ran'"
	eval "$2"
	r client kill type normal >/dev/null 2>&1
	wait_ok 15 "log_lines event=redis_down | tail -n 1 | grep -qE '$4'" "$1: the log says why Redis is down"
	downs=$(log_count event=redis_down)
	rm "$T/hold.$1-1"
	sleep 1
	is "$(log_count event=redis_down)" "$downs" "$1: once"
	is "$(log_count "event=acked queue=q id=$1-1 ")" 0 "$1: nothing is claimed"
	eval "$3"
	push "$1-2"
	wait_ok 25 "[ \$(log_count event=redis_up) -gt $ups ]" "$1: it connects when it is over"
	wait_ok 10 "[ \$(log_count 'event=acked queue=q id=$1-') -eq 2 ]" "$1: both messages are acknowledged"
	is "$(grep -c "^$1-[12] 1$" "$T/ran")" 2 "$1: each ran once"
}

trouble password 'r config set requirepass s3cret2 >/dev/null; REDISCLI_AUTH=s3cret2' 'echo s3cret2 >"$T/password"' \
    'WRONGPASS.* hint=".*redis.password_file'
unlike "$(cat "$T/rqd.log")" s3cret 'no password is in the log'
# A connection that stays, for who is to change that back.
mkfifo "$T/commands"
r <"$T/commands" >"$T/answers" &
OTHER_PIDS="$OTHER_PIDS $!"
exec 3>"$T/commands"
echo ping >&3
wait_for 10 'grep -q PONG "$T/answers"'
# Both are answered before trouble's own client comes: it would kill the one that stays.
trouble clients 'echo "config set maxclients 1" >&3; echo "client kill type normal skipme yes" >&3
    wait_for 10 "[ \$(wc -l <$T/answers) -eq 3 ]"' \
    'echo "config set maxclients 100" >&3; wait_for 15 "r ping >/dev/null 2>&1"' 'max number of clients'
exec 3>&-
trouble replica 'r replicaof 127.0.0.1 1 >/dev/null' 'r replicaof no one >/dev/null' 'replica|READONLY'

# -- no memory: what is there is worked off ------------------------------------------------
for i in 1 2 3 4 5 6; do push "full-$i"; done
r config set maxmemory 1 >/dev/null
like "$(r lpush q '{"id":"more"}' 2>&1)" OOM 'at maxmemory a push is refused'
wait_ok 20 '[ "$(log_count "event=acked queue=q id=full-")" -eq 6 ]' 'but what waits is worked off'
touch "$T/hold.over"
r config set maxmemory 0 >/dev/null
push over
wait_for 10 'grep -q "^over " "$T/ran"'
r config set maxmemory 1 >/dev/null
rm "$T/hold.over"
ok 'log_wait 10 "event=acked queue=q id=over "' 'and acknowledged'
r config set maxmemory 0 >/dev/null

# -- heartbeats that are refused: told once, and once when it is over -------------------------
instance=$(log_lines event=started | log_field instance)
refusals() { r info commandstats | sed -n 's/^cmdstat_set:.*rejected_calls=\([0-9]*\).*/\1/p'; }
beat() { r publish "rqd:control:$instance" beat >/dev/null; }
unseen() {	# BEGIN END CAUSE
	# On a slow machine a heartbeat may have come while there was no memory above.
	wait_for 20 'beat; [ "$(log_count "Redis refuses heartbeats")" -eq "$(log_count "Redis takes heartbeats again")" ]'
	told=$(log_count 'Redis refuses heartbeats')
	over=$(log_count 'Redis takes heartbeats again')
	eval "$1"
	before=$(refusals)
	wait_ok 20 'beat; [ "$(refusals)" -ge $((${before:-0} + 3)) ]' \
	    "heartbeats are refused: $3"
	wait_ok 10 "[ \$(log_count 'Redis refuses heartbeats') -eq $((told + 1)) ]" 'the log says so, once'
	like "$(log_lines 'Redis refuses heartbeats' | tail -n 1)" "level=warn event=redis_warning error=\"$3" 'and why'
	is "$(log_count 'Redis takes heartbeats again')" "$over" 'as long as it lasts'
	eval "$2"
	wait_ok 20 "beat; [ \$(log_count 'level=info.*Redis takes heartbeats again') -eq $((over + 1)) ]" \
	    'and that it is over'
}
unseen 'r config set maxmemory 1 >/dev/null' 'r config set maxmemory 0 >/dev/null' OOM
unseen 'r acl setuser default -set >/dev/null' 'r acl setuser default +set >/dev/null' NOPERM

# -- no tracking ------------------------------------------------------------------------------
# Seen when the queue is armed again: after the next message, or at the safety poll.
polls=$(log_count 'polls instead')	# on a slow machine also while the second connection was down
r acl setuser default -client >/dev/null
ok 'log_wait 20 "level=warn event=redis_warning .*polls instead" $((polls + 1))' 'without tracking it says that it polls'
wait_for 15 '[ "$(r llen q)" -eq 0 ]'
push polled
ok 'log_wait 10 "event=acked queue=q id=polled "' 'and does'
push again
ok 'log_wait 10 "event=acked queue=q id=again "' 'again'
is "$(log_count 'polls instead')" $((polls + 1)) 'that was said once'
is "$(log_count 'event=(suspended|stale|retry|dead|requeued)')" 0 'nothing else has happened to the queue'
r acl setuser default +client >/dev/null

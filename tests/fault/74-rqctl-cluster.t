#!/bin/sh
# rqctl on a Redis Cluster: each command finds its master, also while slots move and masters
# fail.  No daemon.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034,SC2154
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

# shellcheck source=tests/fault/cluster.sh
. "$SRCDIR/tests/fault/cluster.sh"

cluster_start 3 1

# A tag in a slot of each master: {t1} of n1.
K1=$(tag_of n1) K2=$(tag_of n2) K3=$(tag_of n3)
cat >"$T/rqd.conf" <<C
redis { cluster = {"127.0.0.1:$PORT_n1", "127.0.0.1:$PORT_n2"} timeout = 5s }
queue "q1" { key = "{$K1}" concurrency = 0 }
queue "q2" { key = "{$K2}" concurrency = 0 }
queue "q3" { key = "{$K3}" concurrency = 0 }
queue "same" { key = "{$K1}:more" concurrency = 0 }
queue "hot" { shards = 4 concurrency = 0 }
queue "ids" { kind = "unique" key = "Queue:{$K2}" concurrency = 0 }
C
q() { "$RQCTL" -c "$T/rqd.conf" "$@"; }
fails() {	# STATUS REGEX COMMAND...
	_want=$1 _re=$2
	shift 2
	_out=$("$@" 2>&1 </dev/null)
	is "$?" "$_want" "status of $*"
	is "$(echo "$_out" | wc -l)" 1 'one line'
	like "$_out" "^rqctl: .*$_re" "words of $*"
}
waits() { q status --json | tr -d " \n" | grep -o "\"name\":\"$1\",\"key\":\"[^\"]*\",\"kind\":\"ack\",\"waiting\":[0-9]*" | grep -o "[0-9]*$"; }

# -- each command to its master ----------------------------------------------------

for i in 1 2 3; do
	printf '{"id":"a"}\n{"id":"b"}\n' | q push q$i --lines >/dev/null || fail "push to q$i"
	q push q$i --delay 1h '{"id":"late"}' >/dev/null
	eval "key={\$K$i}"
	is "$(n n$i llen "$key") $(n n$i zcard "${key}RETRY")" '2 1' "q$i is on n$i"
done
is "$(q status | grep -c '^q[123] .* 2 ')" 3 'status: one table of all'
is "$(waits q1) $(waits q2) $(waits q3)" '2 2 2' 'status: JSON'
is "$(q peek q2 --json | grep -c '"id"')" 2 'peek'
is "$(q delayed list q3 | grep -c late)" 1 'delayed list'
q delayed now q3 --all >/dev/null
is "$(q delayed cancel q2 --all -y)" 'cancelled 1 message of q2' 'delayed cancel'
is "$(q delayed list q2 2>/dev/null | grep -c late)" 0 'delayed cancel: it is gone'
printf 'one\ntwo\n' | q push ids --lines >/dev/null
is "$(c zcard "Queue:{$K2}")" 2 'ids of kind unique'
is "$(q pause q1 q2 q3 --reason x | wc -l) $(q resume q1 q2 q3 | wc -l)" '3 3' 'pause, resume'
is "$(q purge q1 --waiting -y; n n1 llen "{$K1}")" 'purged 2 waiting of q1
0' 'purge'
c xadd "{$K2}DEAD" '*' id d message m reason attempts >/dev/null
is "$(q dead list q2 | grep -c ' d ')" 1 'dead list'
is "$(q dead retry q2 --all -y >/dev/null; n n2 zcard "{$K2}RETRY")" 1 'dead retry'
c zadd "{$K1}:moreRETRY" 1 x >/dev/null
like "$(q forget same --force -y 2>&1)" . 'forget'
is "$(n n1 exists "{$K1}:moreRETRY")" 0 'forget deletes the keys'
is "$(q ping | grep -c ' answers in ')" 3 'ping asks each master'

# Four keys on three masters, and one queue.
seq 1 12 | sed 's/.*/{"id":"h&"}/' | q push hot --lines >/dev/null
is "$(for i in 1 2 3; do n n$i keys '{hot.[0-9]*}'; done |
    grep -c '^{hot')" 4 'shards: each has messages'
is "$(q status hot | grep -c '^hot .* 12 ') $(waits hot)" '1 12' 'shards: status has one row'
is "$(q peek hot --all | grep -c '"id":"h')" 12 'shards: peek shows all'
is "$(q purge hot --waiting -y; waits hot)" 'purged 12 waiting of hot
0' 'shards: purge'

# A producer leaves the braces out: no queue reads that key.
lost() { q check | grep ': no queue reads it'; }
is "$(lost)" '' 'no message is where no queue reads'
c lpush hot one two >/dev/null
is "$(lost)" 'warning: hot: no queue reads it, and it holds messages: 2; push to the keys that rqctl queues --keys hot prints' \
    'check: messages in a key without its braces'
c --raw lrange hot 0 -1 | tac | q push hot --lines >/dev/null && c del hot >/dev/null
is "$(waits hot) $(lost)" '2 ' 'the recipe of operations.md moves them'
q purge hot --waiting -y >/dev/null
c lpush "$K2" one >/dev/null
like "$(lost)" "$K2: no queue reads it, .* rqctl queues --keys q2 prints" 'also of a queue without shards'
c del hot >/dev/null
c del "$K2" >/dev/null
c set hot 'of another program' >/dev/null
is "$(lost)" '' 'another type of key is another program'"'"'s'
c del hot >/dev/null

for name in a b c d e f; do c set "Lock:$name" "$name" px 600000 >/dev/null; done
is "$(q unlock c --force -y; c exists Lock:c)" 'broke c
0' 'unlock'

# -- what is wrong -------------------------------------------------------------------

like "$(q check)" 'warning: cluster-require-full-coverage is yes' 'check warns'
for node in $NODES; do n "$node" config set cluster-require-full-coverage no >/dev/null; done
unlike "$(q check)" 'coverage' 'check: the warning ends'
SERVER=cluster://127.0.0.1:$PORT_n4
fails 64 'the key plain has no hash tag.*such as \{plain\}' "$RQCTL" --server "$SERVER" push plain x
is "$("$RQCTL" --server "$SERVER" push "{$K3}" x >/dev/null && n n3 llen "{$K3}")" 3 'a replica may be the seed'
is "$(RQD_SERVER=cluster://127.0.0.1:1,127.0.0.1:$PORT_n4 "$RQCTL" push "{$K3}" x >/dev/null &&
    n n3 llen "{$K3}")" 4 'and others may be down'
fails 69 "is a node of a Redis Cluster: write redis.cluster in place of redis.server" \
    "$RQCTL" --server "127.0.0.1:$PORT_n1" push "{$K2}" x
redis_start --port 0
fails 69 '127.0.0.1:1: .*Connection refused' "$RQCTL" --server cluster://127.0.0.1:1 status

# -- slots that move -------------------------------------------------------------------

# One connection for all pictures: the second half of them must follow.
"$RQCTL" -c "$T/rqd.conf" status -w --interval 200ms >"$T/watch" 2>&1 &
WATCH=$!
OTHER_PIDS="$OTHER_PIDS $WATCH"
pictures() { [ "$(grep -c '^q2 .* 2 ' "$T/watch")" -ge "$1" ]; }
wait_ok 30 'pictures 2' 'status -w begins'
slot_move "{$K2}" n3
seen=$(grep -c '^q2 .* 2 ' "$T/watch")
wait_ok 20 'pictures $((seen + 3))' 'MOVED: status -w goes on'
is "$(owner_of "{$K2}")" n3 'the slot has moved'
unlike "$(cat "$T/watch")" 'rqctl:|MOVED' 'MOVED: without an error'
kill "$WATCH"
wait "$WATCH"
is $? 143 'status -w ends by a signal'

# Half moved: the list is still at n3, all other keys are nowhere.
slot_open "{$K2}" n2
is "$(q push q2 ask >/dev/null && c llen "{$K2}")" 3 'ASK or not: a command with one key finds it'
fails 75 'TRYAGAIN' q push q2 --delay 1h x
q -o redis.timeout=60s push q2 --delay 1h x >"$T/push" 2>&1 &
PUSH=$!
slot_move "{$K2}" n2
wait $PUSH
is $? 0 'TRYAGAIN: a script waits for the end of the move'
is "$(n n2 zcard "{$K2}RETRY") $(n n2 llen "{$K2}")" '2 3' 'and nothing is lost'

# The list is at n1 already, the other keys are still at n2, which says ASK.
slot_open "{$K2}" n1
n n2 migrate 127.0.0.1 "$PORT_n1" '' 0 5000 keys "{$K2}" >/dev/null
q push q2 asked >/dev/null
is "$(n n1 cluster countkeysinslot "$(n n1 cluster keyslot "{$K2}")")" 1 'ASK: still only the list is at n1'
slot_move "{$K2}" n1
is "$(n n1 llen "{$K2}") $(n n1 zcard "{$K2}RETRY")" '4 2' 'ASK: a command with one key followed'

# -- masters that fail -----------------------------------------------------------------

node_kill n3
wait_ok 90 'q push q3 more >/dev/null 2>&1' 'a replica takes over: push finds it'
ok '[ "$(c llen "{$K3}")" -ge 5 ]' 'and its messages are there'
for node in n1 n2 n4 n5 n6; do n "$node" config set cluster-require-full-coverage yes >/dev/null; done
node_kill "$(owner_of "{$K3}")"
wait_for 60 'c get x 2>&1 | grep -q CLUSTERDOWN'
fails 75 CLUSTERDOWN q push q1 x
fails 69 'Connection refused' q push q3 x

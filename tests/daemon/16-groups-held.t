#!/bin/sh
# Held messages: what rqctl, the dashboard and metrics say of them; a daemon whose pops find only
# such messages has its places for others; large messages.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v curl >/dev/null || skip_all 'no curl'
H=$OWN/http.sock
sample() { curl -s -m 20 --unix-socket "$H" http://rqd/metrics | sed -n "s/^$1 //p"; }
push() { r lpush q "{\"id\":\"$1\",\"g\":\"$2\"}" >/dev/null; }

redis_start
handler work <<'H'
cat >/dev/null
echo "$RQD_ID" >>"$T/began"
[ "$RQD_ID" != a1 ] || while [ -e "$T/hold" ]; do sleep 0.05; done
H
began() { grep -sqx "$1" "$T/began"; }
touch "$T/hold"
rqd_start <<C
http { listen = "unix:$H" }
queue "q" {
	command = {"$T/work"}
	group_by = "g"
	concurrency = 1
}
C
log_wait 30 event=redis_up
push a1 a
wait_ok 10 'began a1' 'one is in flight'

# The other daemon's pops find only messages that must wait, and its one place is for all queues.
rqd_start two <<C
max_handlers = 1
queue "q" {
	command = {"$T/work"}
	group_by = "g"
	concurrency = 1
}
queue "other" { command = {"$T/work"} }
C
log_wait 30 event=redis_up 1 two
for i in 2 3 4 5 6; do push a$i a; done
wait_ok 10 '[ "$(r zcard qHELD)" = 5 ]' 'those behind it are held'
r lpush other '{"id":"o"}' >/dev/null
wait_ok 10 'began o' 'a daemon that finds only these runs messages of another queue'
push b1 b
wait_ok 10 'began b1' 'and of another group'

# -- a message whose group is found only by decoding --
large() {	# ID GROUP: more than 32 KiB, with an escape
	{ printf '{"x":"\\n'; head -c 40000 /dev/zero | tr '\0' x
	    printf '","id":"%s","g":"%s"}' "$1" "$2"; } | r -x lpush q >/dev/null
}
large a7 a; large c1 c; large c2 c; push d1 d
for i in c1 c2 d1; do wait_ok 10 "began $i" "behind large messages: $i"; done
is "$(r zcard qHELD)" 6 'one of these is held, too'

# -- what is said of them --
like "$(ctl status q --json)" '"held": 6,' 'status'
wait_ok 20 '[ "$(sample "rqd_queue_messages{queue=\"q\",state=\"held\"}")" = 6 ]' 'metrics'
wait_ok 30 '[ "$(sample "rqd_queue_latency_seconds{queue=\"q\"}" | cut -d . -f 1)" -ge 1 ]' \
    'the latency is that of the first of them'
like "$(ctl peek q --held --count 2)" ' a2 .*
.* a3 ' 'peek, in their order'
is "$(ctl peek q --held --raw)" '{"id":"a2","g":"a"}' 'peek --raw'
like "$(ctl peek q --held --json)" '"id": "a7"' 'peek --json'
like "$(ctl show q a7)" '^held .*, waits behind a1$' 'show'
is "$(ctl show q a2 --raw)" '{"id":"a2","g":"a"}' 'show --raw'
like "$(ctl show q a2 --json)" '"place": "held"' 'show --json'
like "$(ctl cancel -n q a2)" '^would be cancelled: a2#.* of q, held$' 'cancel -n'
like "$(ctl cancel --dead q a2 a3)" '^cancelled as a dead letter: a2#.* of q, held
cancelled as a dead letter: a3#.* of q, held$' 'cancel --dead'
is "$(r zcard qHELD)" 4 'they are held no longer'
like "$(ctl dead list q)" ' a2 .*cancelled' 'dead list'
like "$(ctl dead retry q --all -y)" '2' 'they are tried again'
wait_ok 10 '[ "$(r zcard qHELD)" = 6 ]' 'and wait again'
is "$(ctl peek q --held --json | tr -d ' ,' | sed -n 's/"id"://p' | tr -d '"' | tr '\n' ' ')" 'a4 a5 a6 a7 a2 a3 ' \
    'at the end of their group'
is "$(ctl purge q --held -n)" 'would be purged: 6 held of q' 'purge -n'
r del qDEAD >/dev/null
rm "$T/hold"
wait_ok 20 no_keys 'all are handled'
is "$(grep '^a' "$T/began" | tr '\n' ' ')" 'a1 a4 a5 a6 a7 a2 a3 ' 'in this order'

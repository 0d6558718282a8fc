#!/bin/sh
# Hand-over: the script that acks a message also pushes the output of its handler to
# another queue.  A handler that fails, or breaks a limit, pushes nothing.  A hand-over
# that Redis refuses waits.

# shellcheck source=tests/lib.sh disable=SC2046
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

MORE_KEYS='items moved parts Queue:ids ev'
redis_start
# Prints as its id says.
handler as_told <<'H'
case $RQD_ID in
three) echo one; echo; echo 'two  2'; printf three ;;
fails) echo lost; exit 1 ;;
dead) echo lost; exit 65 ;;
many) seq 1 6 ;;
wide) head -c 2000 /dev/zero | tr '\0' w ;;
huge) head -c 1100000 /dev/zero | tr '\0' h ;;
loud) seq 1 3000 >&2; echo heard ;;
late) (sleep 30; echo late) & echo early ;;
half) { printf '{"amount":10'; : >"$T/half"; sleep 30; echo '000}'; } &
	until [ -e "$T/half" ]; do sleep 0.2; done ;;
shut) { printf '{"amount":10'; exec >&-; : >"$T/shut"; sleep 30; } &
	until [ -e "$T/shut" ]; do sleep 0.2; done ;;
binary) printf 'a\0b\377\n' ;;
none) ;;
waits) until [ -e "$T/go" ]; do sleep 0.2; done; echo "a long child of waits" ;;
*) echo "child of $RQD_ID" ;;
esac
H
# Does what its message says, in sh; m is a message of 5000 bytes.
handler sh <<'H'
m=$(head -c 5000 /dev/zero | tr '\0' m)
eval "$(cat)"
H
handler persistent <<'H'
while read -r n attempt length id && IFS= read -r message; do
	eval "$message"
done
H
# Pushes a megabyte for each message, and answers twenty together.
handler piped <<'H'
m=$(head -c 1000000 /dev/zero | tr '\0' m)
count=0
while read -r n attempt length id && IFS= read -r message; do
	echo "$n push parts $m"
	count=$((count + 1))
	[ $((count % 20)) -gt 0 ] || for k in $(seq $((n - 19)) "$n"); do echo "$k ok"; done
done
H
# Answers each at once.
handler owes <<'H'
m=$(head -c 1000000 /dev/zero | tr '\0' m)
until [ -e "$T/owe" ]; do sleep 0.2; done
while read -r n attempt length id && IFS= read -r message; do
	echo "$n push parts $m"
	echo "$n ok"
	echo "answered-$n" >&2
done
H
config_text() {	# KEY-OF-ITEMS
	cat <<C
log { level = "debug" }
queue "orders" {
	command = {"$T/as_told"}
	concurrency = 4
	backoff = 1h
	output = "push:items"
	pushes = {"items", "parts"}
	push_max = 5
	output_limit = 100
	suspend_after = 0
}
queue "wide" { command = {"$T/as_told"} output = "push:parts" pushes = {"parts"} max_attempts = 1 }
queue "ids" { kind = "unique" command = {"$T/as_told"} output = "push:items" pushes = {"items"} }
queue "ev" { kind = "stream" command = {"$T/as_told"} output = "push:items" pushes = {"items"} }
queue "sh" {
	command = {"$T/sh"} pushes = {"items", "parts"} backoff = 1h suspend_after = 0
	concurrency = 2
}
queue "answers" {
	command = {"$T/persistent"} mode = "persistent" framing = "line"
	pushes = {"items", "parts"} backoff = 1h
}
queue "piped" {
	command = {"$T/piped"} mode = "persistent" framing = "line" pipeline = 20
	pushes = {"parts"} backoff = 1h suspend_after = 0
}
queue "owes" {
	command = {"$T/owes"} mode = "persistent" framing = "line" pipeline = 40
	pushes = {"parts"} backoff = 1h
}
queue "items" { concurrency = 0 key = "$1" message_max = 1K }
queue "parts" { concurrency = 0 }
C
}
rqd_start <<C
$(config_text items)
C
push() { r lpush "${2:-orders}" "{\"id\":\"$1\"}" >/dev/null; }
items() { r --raw lrange "${1:-items}" 0 -1 | sed "/^$/d" | tac | tr "\n" ","; }

# -- what is pushed -----------------------------------------------------------------
push three
log_wait 10 'event=acked queue=orders id=three '
is "$(items)" 'one,two  2,three,' 'each line is a message, in order; empty ones are not'
is "$(log_lines 'event=pushed queue=orders id=three ' | grep -o 'to=items count=3')" \
    'to=items count=3' 'the log says where and how many'
is "$(log_count 'event=output queue=orders')" 0 'and has no such line as output'
r del items >/dev/null
push none
log_wait 10 'event=acked queue=orders id=none '
is "$(log_count 'event=pushed queue=orders id=none')" 0 'no line, no push'
push binary
log_wait 10 'event=acked queue=orders id=binary '
is "$(r rpop items)" "$(r eval 'return "a\0b\255"' 0)" 'bytes stay as they are'
push loud
log_wait 10 'event=acked queue=orders id=loud '
is "$(items)" 'heard,' 'the limit of output does not count messages'
ok '[ "$(log_count "event=output_cut queue=orders id=loud")" -eq 1 ]' 'but standard error'
r del items >/dev/null
push late
log_wait 10 'event=acked queue=orders id=late '
is "$(items)" 'early,' 'what was printed before the exit counts'
r del items >/dev/null
push half
log_wait 10 'event=[a-z]* queue=orders id=half .*reason=pushes'
is "$(log_count 'event=acked queue=orders id=half ') $(items)" '0 ' 'a message that a process is still writing is none'
ctl cancel orders half >/dev/null
push shut
log_wait 10 'event=[a-z]* queue=orders id=shut .*reason=pushes'
is "$(log_count 'event=acked queue=orders id=shut ') $(items)" '0 ' 'also where the pipe has ended'
ctl cancel orders shut >/dev/null
r zadd Queue:ids 0 some-id >/dev/null
log_wait 10 'event=acked queue=ids '
r xadd ev '*' message m >/dev/null
log_wait 10 'event=acked queue=ev '
is "$(items | sed 's/of [0-9][0-9-]*/of ENTRY/')" 'child of some-id,child of ENTRY,' 'kinds unique and stream'
r del items >/dev/null


# -- statements: descriptor 3, and persistent handlers -----------------------------------
say() {	# QUEUE MESSAGE EVENT
	_before=$(log_count "event=$3 queue=$1 ")
	r lpush "$1" "$2" >/dev/null
	log_wait 10 "event=$3 queue=$1 " "$((_before + 1))"
}
say sh 'echo push items a b >&3; echo push parts $m$m >&3; printf "push items c" >&3; echo logged' acked
is "$(items),$(items parts | wc -c)" 'a b,c,,10001' 'push on descriptor 3, longer than other statements may be'
is "$(log_lines 'event=pushed queue=sh' | grep -o 'to=.*' | tr '\n' ' ')" 'to=items count=2 to=parts count=1 ' \
    'a record for each queue'
is "$(log_count 'event=output queue=sh .*line=logged')" 1 'output is logged'
r del items parts >/dev/null
say sh 'echo push items a >&3; echo retry 1h later >&3; exit 1' retry
say sh 'echo push items a >&3; echo defer 1h later >&3' deferred
say sh 'echo push items a >&3; exit 3' retry
say sh 'echo push items a >&3; echo push orders b >&3' retry
say sh 'echo push items $m >&3' retry
say sh 'echo push items a >&3; echo pusch items b >&3' retry
is "$(items)" '' 'with another verdict nothing is pushed, nor where a statement is wrong'
is "$(log_lines 'event=retry queue=sh ' | grep -o ' reason=[a-z]*' | tr -d '\n')" \
    ' reason=answer reason=exit reason=pushes reason=pushes reason=protocol' 'the reasons'
say answers 'echo $n push items one; echo $n push parts two; echo $n push items three; echo $n ok' acked
is "$(items),$(items parts)" 'one,three,,two,' 'a persistent handler pushes before its answer'
r del items parts >/dev/null
say answers 'echo $n push items one; echo $n retry 1h later' retry
say answers 'echo $n push nowhere one; echo $n ok' retry
say answers 'echo $n push items $(head -c 2000 /dev/zero | tr "\0" x); echo $n ok' retry
is "$(items)" '' 'and nothing if it has failed, or may not push that'
is "$(log_lines 'event=retry queue=answers ' | grep -o ' reason=[a-z]*' | tr -d '\n')" \
    ' reason=answer reason=pushes reason=pushes' 'the reasons'
say answers 'echo $n push items last; echo $n ok' acked
is "$(items)" 'last,' 'its process goes on'
r del items parts >/dev/null
for round in 1 2; do
	r lpush piped $(seq 20) >/dev/null
	ok "log_wait 20 'event=acked queue=piped ' $((16 * round))" \
	    'what a persistent process has in hand may push 16 MiB'
	ok "log_wait 10 'event=retry queue=piped .*reason=pushes .*more than 16777216 bytes' $((4 * round))" \
	    'and what goes beyond fails alone'
done
is "$(r llen parts)" 32 'answered ones count no longer'
r del parts >/dev/null

# -- what is not ------------------------------------------------------------------------
for id in fails many dead; do push $id; done
log_wait 10 'event=retry queue=orders id=fails '
log_wait 10 'event=dead queue=orders id=dead '
log_wait 10 'event=retry queue=orders id=many '
is "$(items)" '' 'a failure pushes nothing, nor do too many'
like "$(log_lines 'event=retry queue=orders id=many ')" \
    'reason=pushes .*cause="more messages than push_max, which is 5"' 'the log says why'
push wide
log_wait 10 'event=retry queue=orders id=wide .*reason=pushes .*message_max, which is 1024'
is "$(items)" '' 'a line above the message_max of its queue'
push huge wide
log_wait 10 'event=dead queue=wide id=huge '
is "$(items parts)" '' 'more than 1 MiB'
like "$(r --raw xrange wideDEAD - + | tr '\n' ' ')" 'error messages of more than 1048576 bytes in all' \
    'and the dead letter says why'

# -- what Redis refuses -----------------------------------------------------------------
r set items 'no list' >/dev/null
push a
log_wait 10 'event=warning queue=orders .*cannot push to items: WRONGTYPE'
about() { "$RQCTL" -c "$T/rqd.conf" "$@"; }
wait_ok 10 'about status orders | grep -q "Redis refuses results: .*cannot push to items: WRONGTYPE"' 'status says so'
like "$(about status orders --json | tr -d '\n')" '"mood": "bad"' 'and that it is bad'
is "$(about check orders | sed '/appendonly/d; s/^\(error.*\) messages: .*WRONGTYPE.*/\1/'; about check orders >/dev/null; echo $?)" "error: orders: Redis refuses the results of its
warning: orders: 1 dead letter
2" 'check, too'
like "$(r --raw keys 'rqd:daemon:*' | while read -r key; do r get "$key"; done)" \
    '"orders": *\{[^{]*"state": *"refused", *"blocked": *"refused",[^{}]* *"reason": *"[^"]*WRONGTYPE' 'the heartbeat'
push b wide
wait_ok 10 '[ "$(items parts)" = "child of b," ]' 'another queue goes on'
is "$(r zcard ordersBACKUP)" 1 'the delivery is still in hand'
r del items >/dev/null
log_wait 15 'event=acked queue=orders id=a '
is "$(items)" 'child of a,' 'it is pushed when the key is right, once'
ok 'log_wait 10 "event=warning queue=orders.*Redis accepts the results again"' 'and the log says so'
wait_ok 10 '! about status orders | grep -q "Redis refuses"' 'and the status'
push waits
log_wait 10 'event=delivered queue=orders id=waits '
r config set maxmemory 1 >/dev/null
: >"$T/go"
log_wait 10 'event=warning queue=orders .*OOM'
is "$(items)" 'child of a,' 'a full Redis: nothing is pushed'
r config set maxmemory 0 >/dev/null
log_wait 15 'event=acked queue=orders id=waits '
is "$(items)" 'child of a,a long child of waits,' 'and then it is, once'

# What takes no more memory than it frees drains a full Redis, beside a result that takes more.
r del items parts >/dev/null
pad=$(head -c 100 /dev/zero | tr '\0' x)
for i in $(seq 40); do
	r lpush sh "until [ -e \"\$T/drain\" ]; do sleep 0.1; done; echo push items $i >&3; echo push items $i >&3 # $pad" >/dev/null
	[ "$i" -ne 3 ] || r lpush sh 'until [ -e "$T/drain" ]; do sleep 0.1; done; echo push parts $m >&3' >/dev/null
done
r config set maxmemory 1 >/dev/null
: >"$T/drain"
wait_ok 20 '[ "$(r llen items)" = 80 ]' 'a full Redis: a queue drains whose messages become smaller'
is "$(r exists sh) $(r zcard shBACKUP) $(r llen parts)" '0 1 0' 'only what becomes larger waits'
r config set maxmemory 0 >/dev/null
wait_ok 15 '[ "$(r llen parts) $(r exists shBACKUP)" = "1 0" ]' 'until there is room'
r del parts >/dev/null

# Answers that Redis does not take are not read without a bound.
r del parts >/dev/null
before=$(log_count 'event=delivered queue=sh ')
r lpush owes $(seq 40) >/dev/null
r lpush sh 'until [ -e "$T/busy" ]; do sleep 0.2; done; echo was-busy' >/dev/null
log_wait 10 'event=delivered queue=owes ' 40
log_wait 10 'event=delivered queue=sh ' $((before + 1))
r config set maxmemory 1 >/dev/null
: >"$T/owe"
ok 'log_wait 20 "event=output queue=owes .*line=answered-16"' 'a full Redis: a process answers 16 MiB'
: >"$T/busy"
log_wait 10 'event=output queue=sh .*line=was-busy'
ok '[ "$(log_count "event=output queue=owes .*line=answered-")" -le 20 ]' 'and waits then'
r config set maxmemory 0 >/dev/null
ok 'log_wait 30 "event=acked queue=owes " 40' 'until Redis takes them'
is "$(r llen parts) $(log_count 'event=retry queue=owes ')" '40 0' 'and nothing has failed'
r del parts >/dev/null

# An ACL denies one of two queues, which refuses each call that names it.
r acl setuser default resetkeys '~[^p]*' >/dev/null
r lpush sh 'echo push parts denied >&3' >/dev/null
log_wait 10 'event=warning queue=sh .*NOPERM'
held=$(log_lines 'event=delivered queue=sh ' | tail -n 1 | log_field id)
r lpush orders '{"id":"beside"}' >/dev/null
log_wait 10 'event=acked queue=orders id=beside '
say sh 'echo push items goes >&3' acked
like "$(items)" 'goes,$' 'a denied queue holds up nothing for another one'
is "$(r zcard shBACKUP)" 1 'the delivery is held'
ok 'ctl cancel --retry sh "$held" >/dev/null' 'rqctl cancel --retry'
ok 'log_wait 10 "event=retry queue=sh id=$held .*reason=cancelled"' 'drops what it pushes, and lets it run again'
ctl retry now sh "$held" >/dev/null
log_wait 10 "event=delivered queue=sh id=$held attempt=2"
ok 'ctl cancel sh "$held" >/dev/null' 'rqctl cancel'
ok 'log_wait 10 "event=cancelled queue=sh id=$held "' 'ends it'
wait_ok 10 '[ "$(r zcard shBACKUP)" = 0 ]' 'for good'
r acl setuser default allkeys >/dev/null
is "$(items parts)" '' "and nothing is pushed"
r del items >/dev/null
# A dead letter that cannot be written waits in QRETRY: that is no result that Redis refuses.
r set shDEAD 'no stream' >/dev/null
r lpush sh 'echo dead hopeless >&3' >/dev/null
log_wait 10 'event=warning queue=sh .*could not be written'
about running >/dev/null
wait_ok 20 'r --raw keys "rqd:daemon:*" | while read -r key; do r get "$key"; done |
    grep -q "\"sh\":{[^{]*\"state\":\"running\",\"blocked\":\"\""' 'a dead letter that cannot be written is none'
for k in shDEAD shRETRY shCONTEXT shDELIVERY; do r del $k >/dev/null; done

# -- the daemon dies, and a reload ------------------------------------------------------
config_write rqd <<C
$(config_text moved)
C
rqd_signal HUP
log_wait 10 event=reloaded
push d
log_wait 10 'event=acked queue=orders id=d '
is "$(items moved)" 'child of d,' 'a reload that moves the queue moves what is pushed'
wait_ok 15 '[ "$(r hget ordersSTATS pushed)" = 10 ]' 'the pushes are counted'
like "$(ctl -c "$T/rqd.conf" status 2>/dev/null | grep '^items ')" 'others consume it' 'a queue of others is in the status'
unlike "$(ctl -c "$T/rqd.conf" check 2>&1)" 'items' 'and no problem for rqctl check'
r set moved 'no list' >/dev/null
push e
log_wait 10 'event=warning queue=orders .*cannot push to moved: WRONGTYPE'
rqd_stop
is "$(log_count 'event=returned queue=orders id=e .*reason=drain') $(r hget ordersDELIVERY e | cut -d ' ' -f 1-3)" \
    '1 0 0 -' 'a daemon that stops gives back what Redis refuses, uncounted'
for q in orders sh answers piped; do r del ${q}RETRY ${q}CONTEXT ${q}DELIVERY ${q}DEAD >/dev/null; done
r del items moved parts wideDEAD ev >/dev/null

#!/bin/sh
# "save TEXT" of handlers: the next delivery of the message has the text, whatever has ended the
# one before, and no other message has it.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
# The message's "sh" is run; each run leaves the text that it got in got.ID.
handler sh <<'H'
printf '%s\n' "${RQD_SAVED-none}" >>"$T/got.$RQD_ID"
n=$(wc -l <"$T/got.$RQD_ID")
save() { printf 'save %s\n' "$1" >&3; }
eval "$(sed 's/^{"id":"[^"]*","sh":"\(.*\)"}$/\1/')"
H
handler persistent <<'H'
saved=none
while read -r n attempt length id; do
	[ "$attempt" != saved ] || { saved="$length${id:+ $id}"; continue; }
	IFS= read -r message
	echo "$saved" >>"$T/got.$id"
	case $id.$attempt in
	again.1 | slow.1)
		echo "$n save first"
		echo "$n save second  of $id"
		[ $id = again ] || sleep 30
		echo "$n retry 100ms" ;;
	*) echo "$n ok" ;;
	esac
	saved=none
done
H
handler batch <<'H'
echo "1 save x" >&3
H
cat >"$T/start" <<C
defaults { $AS backoff = 50ms kill_grace = 1s lease = 3s }
queue "q" { command = {"$T/sh"} concurrency = 4 suspend_after = 0 }
queue "dead" { command = {"$T/sh"} max_attempts = 2 suspend_after = 0 }
queue "unique" { kind = "unique" key = "unique" command = {"$T/sh"} }
queue "stream" { kind = "stream" command = {"$T/sh"} }
queue "list" { kind = "list" command = {"$T/sh"} }
queue "batch" { command = {"$T/batch"} batch = 2 }
queue "says" { command = {"$T/persistent"} mode = "persistent" framing = "line" time_limit = 2s suspend_after = 0 }
C
rqd_start one <"$T/start"
push() { r lpush "$1" "{\"id\":\"$2\",\"sh\":\"$3\"}" >/dev/null; }	# QUEUE ID SCRIPT
got() { tr '\n' ' ' <"$T/got.$1" | sed 's/ $//'; }
acked() { log_wait 20 "event=acked queue=$1 id=$2 " 1 one; }	# QUEUE ID
text() { ctl show "$@" | sed -n '1s/.*, saved: //p'; }

# -- what ends the first run ---------------------------------------------------------
first='[ $n -gt 1 ] || { save one; save two; '
push q exit "$first exit 1; }"
push q retry "$first echo retry 100ms >&3; }"
push q defer "$first echo defer 1 >&3; }"
push q killed "$first kill -9 \$\$; }"
push q typo "$first echo seva three >&3; }"
for id in exit retry defer killed typo; do
	acked q $id
	is "$(got $id)" 'none two' "$id: the next run has the last text"
done
push q three '[ $n -gt 3 ] || { [ $n -gt 1 ] || save one; [ $n -ne 3 ] || save; exit 1; }'
acked q three
is "$(got three)" 'none one one none' 'a text stays until another one, or an empty one'
push q never 'save x'
acked q never
push q never 'exit 0'
log_wait 20 'event=acked queue=q id=never ' 2 one
is "$(got never)" 'none none' 'an ack drops it'
is "$(r hlen qCONTEXT)" 0 'nothing of it is left'
# A last line that may be cut is not saved.
push q cut '[ $n -gt 1 ] || { printf save.half.of.a.wo | tr . " " >&3; kill -9 $$; }'
acked q cut
is "$(got cut)" 'none none' 'an unfinished line of a handler that was killed is no text'

# -- which texts -----------------------------------------------------------------------
printf 'save  a\tb $x %%s \377\033 \n' >"$T/bytes"
printf 'save %4096d\n' 1 >"$T/long"
printf 'save ok\nsave %4097d\n' 1 >"$T/longer"
printf 'save a\0b\n' >"$T/nul"
for id in bytes long longer nul; do
	push q $id "[ \$n -gt 1 ] || { cat $T/$id >&3; [ $id = longer ] || [ $id = nul ] || exit 1; }"
done
acked q bytes
is "$(sed -n 2p "$T/got.bytes" | od -An -tx1)" "$(cut -c 6- "$T/bytes" | od -An -tx1)" 'any bytes, blanks included'
acked q long
is "$(sed -n 2p "$T/got.long" | wc -c)" 4097 '4096 bytes'
acked q longer
like "$(log_lines 'event=retry queue=q id=longer' one)" 'status=0 .*reason=protocol .*cause="a text of more than 4 KiB: save ' '4097 bytes are too many'
is "$(got longer)" 'none ok' 'the text before it stays'
acked q nul
like "$(log_lines 'event=retry queue=q id=nul' one)" 'reason=protocol' 'no NUL'
push list none 'save x'
ok 'log_wait 20 "event=failed queue=list id=none .*reason=protocol .*cause=.this kind of queue cannot save" 1 one' 'a queue that keeps nothing cannot save'
r lpush batch a b >/dev/null
ok 'log_wait 20 "event=retry queue=batch .*reason=protocol .*cause=.a batch cannot save" 1 one' 'a batch cannot save'
ctl pause batch >/dev/null
r del batchRETRY batchCONTEXT batchDELIVERY batch >/dev/null

# -- the dead letter, and its replay ---------------------------------------------------
push dead d 'save step$n; exit 1'
log_wait 20 'event=dead queue=dead id=d ' 1 one
is "$(got d)" 'none step1' 'the second run had it'
like "$(ctl dead show dead d)" '^saved +step2$' 'dead show prints it'
ctl dead export dead >"$T/letters"
like "$(cat "$T/letters")" '"saved": ?"step2"' 'dead export has it'
is "$(r hlen deadCONTEXT)" 0 'the message is gone'
ctl dead retry dead d -y >/dev/null
log_wait 20 'event=dead queue=dead id=d ' 2 one
is "$(got d)" 'none step1 step2 step3' 'a replay brings it back'
ctl dead drop dead --all -y >/dev/null
push q waits 'save cancel; echo defer 1h >&3'
push q buried 'save bury; echo defer 1h >&3'
log_wait 20 'event=deferred queue=q id=waits' 1 one
log_wait 20 'event=deferred queue=q id=buried' 1 one
ctl cancel q waits --dead >/dev/null
ctl bury q buried -y >/dev/null
like "$(ctl dead show q waits)" '^saved +cancel$' 'cancelled'
like "$(ctl dead show q buried)" '^saved +bury$' 'buried'
is "$(r hlen qCONTEXT)" 0 'nothing else is left of them'
ctl dead drop q --all -y >/dev/null

# -- while it runs: shown; at most one write each 100 ms; not with another's token --------
printf 'save \033[31m step\n' >"$T/esc"
push q run '[ $n -gt 1 ] || { printf save.$(printf %o 27)x >/dev/null; cat $T/esc >&3; : >$T/began; until [ -e $T/end ]; do sleep 0.1; done; exit 1; }'
wait_for 20 '[ -e "$T/began" ]'
wait_ok 5 '[ -n "$(text q run)" ]' 'it is saved at once'
is "$(text q run)" '\x1b[31m step' 'show prints it, escaped'
like "$(ctl running q)" ' \(saved \\x1b\[31m step\)$' 'running too'
like "$(ctl running q --json)" '"saved": "\\u001[bB]\[31m step"' '--json'
: >"$T/end"
acked q run
writes() { r info commandstats | sed -n 's/^cmdstat_hset:calls=\([0-9]*\),.*/\1/p'; }
push q many '[ $n -gt 1 ] || { for i in $(seq 50); do save $i; sleep 0.02; done; : >$T/more; until [ -e $T/quiet ]; do sleep 0.1; done; exit 1; }'
before=$(writes) begun=$(msec)
wait_for 30 '[ -e "$T/more" ] && [ "$(text q many)" = 50 ]'
wrote=$((($(writes) - before) / 2)) took=$(($(msec) - begun))
ok '[ $wrote -ge 3 ] && [ $wrote -le $((took / 100 + 3)) ]' "few writes for many texts ($wrote in $took ms)"
: >"$T/quiet"
acked q many
is "$(got many)" 'none 50' 'the last one counts'
push q lost '[ $n -gt 1 ] || { save mine; : >$T/mine; until [ -e $T/taken ]; do sleep 0.1; done; save theirs; : >$T/late; sleep 20; }'
wait_for 20 '[ -e "$T/mine" ] && [ "$(text q lost)" = mine ]'
r hset qDELIVERY lost "$(r --raw hget qDELIVERY lost | sed 's/^\(0 0\) [^ ]*/\1 other.1.1/')" >/dev/null
: >"$T/taken"
# On a slow machine it ends before it has said that.
wait_for 20 '[ -e "$T/late" ] || [ "$(log_count "event=stale queue=q id=lost" one)" -eq 1 ]'
wait_ok 20 '[ "$(log_count "event=stale queue=q id=lost" one)" -eq 1 ]' 'a delivery that is lost ends'
acked q lost
is "$(got lost)" 'none mine' 'its text is not saved'

# -- other kinds -----------------------------------------------------------------------
handler sh <<'H'
printf '%s\n' "${RQD_SAVED-none}" >>"$T/got.$RQD_QUEUE"
n=$(wc -l <"$T/got.$RQD_QUEUE")
[ "$n" -ge 3 ] || { echo "save x$n" >&3; exit 1; }
H
r zadd unique 1 job >/dev/null
r xadd stream '*' a b >/dev/null
acked unique job
acked stream '[0-9-]*'
is "$(got unique) $(got stream)" 'none x1 x2 none x1 x2' 'unique and stream'
r zadd unique 1 job >/dev/null
log_wait 20 'event=acked queue=unique id=job ' 2 one
is "$(got unique)" 'none x1 x2 none' 'a new run of an id begins without'
handler sh <<'H'
printf '%s\n' "${RQD_SAVED-none}" >>"$T/got.$RQD_QUEUE"
[ -n "${RQD_SAVED-}" ] || { echo "save dies" >&3; exit 65; }
H
r zadd unique 1 job >/dev/null
log_wait 20 'event=dead queue=unique id=job ' 1 one
ctl dead retry unique job -y >/dev/null
log_wait 20 'event=acked queue=unique id=job ' 3 one
is "$(got unique)" 'none x1 x2 none none dies' 'unique: a replay brings it back'
r del stream >/dev/null

# -- persistent: a line before the header -----------------------------------------------
r lpush says '{"id":"again"}' '{"id":"slow"}' >/dev/null
log_wait 30 'event=acked queue=says id=again ' 1 one
log_wait 30 'event=acked queue=says id=slow ' 1 one
is "$(tr '\n' '|' <"$T/got.again")" 'none|second of again|' 'the next delivery gets the text'
is "$(tr '\n' '|' <"$T/got.slow")" 'none|second of slow|' 'also after time_limit'

# -- another daemon, after the end of the first -------------------------------------------
handler sh <<'H'
printf '%s\n' "${RQD_SAVED-none}" >>"$T/got.$RQD_ID"
[ "$RQD_ID.$(wc -l <"$T/got.$RQD_ID")" != moved.1 ] || { echo "save here" >&3; : >"$T/moving"; sleep 20; }
H
push q moved ''
wait_for 20 '[ -e "$T/moving" ] && [ -n "$(text q moved)" ]'
rqd_kill9 one
rqd_start two <"$T/start"
log_wait 30 'event=acked queue=q id=moved ' 1 two
is "$(got moved)" 'none here' 'a crash of the daemon, and another daemon'

# A consumer by the published convention takes an expired message, and pushes it again: it is
# a new message.
rm "$T/moving" "$T/got.moved"
push q moved ''
wait_for 20 '[ -e "$T/moving" ] && [ -n "$(text q moved)" ]'
rqd_kill9 two
r eval 'redis.call("ZREM", KEYS[1], ARGV[1]); return redis.call("LPUSH", KEYS[2], redis.call("HGET", KEYS[3], ARGV[1]))' 3 qBACKUP q qCONTEXT moved >/dev/null
rqd_start three <"$T/start"
log_wait 30 'event=acked queue=q id=moved ' 1 three
is "$(got moved)" 'none none' 'what another consumer pushes again begins without a text'
ctl resume batch >/dev/null
wait_ok 10 '[ "$(r exists qCONTEXT qDELIVERY qRETRY)" -eq 0 ]' 'nothing is left of the text'

# -- rqctl try ------------------------------------------------------------------------
handler try <<'H'
echo "got ${RQD_SAVED-none}"
echo "save next" >&3
exit 1
H
cat >"$T/try.conf" <<C
queue "t" { command = {"$T/try"} $AS }
C
echo m | "$RQCTL" -c "$T/try.conf" try t --saved 'the last' >"$T/said" 2>&1
like "$(cat "$T/said")" '^got the last$' 'try --saved'
like "$(cat "$T/said")" 'would be retried in .*; its next delivery would get RQD_SAVED=next$' 'try prints what would be saved'
rqd_stop three

#!/bin/sh
# env_message: members of messages as variables of handlers, and the trace id in the log.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
# Writes its variables, each with a mark behind it, and fails if told so.
handler shows <<'H'
{
	printf '%s\n' "to=${TO-unset}|" "n=${N-unset}|" "flag=${FLAG-unset}|" "z=${Z-unset}|"
	env | sed -n '/^TRACEPARENT=/p'
} >"$T/new.$RQD_ID.$RQD_ATTEMPT"
mv "$T/new.$RQD_ID.$RQD_ATTEMPT" "$T/got.$RQD_ID.$RQD_ATTEMPT"
echo "to $RQD_ID"
case $N in 65) exit 65 ;; 1) [ "$RQD_ATTEMPT" -gt 1 ] || exit 1 ;; esac
H
handler batch <<'H'
cat >/dev/null
echo "${TO-unset}" >"$T/batch"
H
handler answers <<'H'
while read -r n _ _ _ && IFS= read -r _; do echo "${TO-unset}" >"$T/persistent"; echo "$n ok"; done
H
conf() {
	cat <<C
defaults { $AS env = {"TO=nobody", "Z=z"} env_message = {"TO=to", "N=n", "FLAG=flag", "TRACEPARENT=traceparent"} }
queue "q" { command = {"$T/shows"} concurrency = 4 suspend_after = 0 backoff = 100ms }
queue "plain" { command = {"$T/shows"} env_message = {} }
queue "list" { kind = "list" command = {"$T/shows"} }
queue "stream" { kind = "stream" command = {"$T/shows"} }
queue "unique" { kind = "unique" key = "unique" command = {"$T/shows"} }
queue "news" { kind = "channel" command = {"$T/shows"} }
queue "batch" { command = {"$T/batch"} batch = 2 }
queue "persistent" { command = {"$T/answers"} mode = "persistent" framing = "line" }
C
}
conf >"$T/text"
rqd_start <"$T/text"
push() { printf '%s' "$2" | r -x lpush "$1" >/dev/null; }	# QUEUE MESSAGE
# What the handler got, in a line.
got() {	# ID [ATTEMPT]
	wait_for 10 '[ -e "$T/got.'"$1.${2:-1}"'" ]' || return
	tr '\n' ' ' <"$T/got.$1.${2:-1}"
}

# -- values ------------------------------------------------------------------------
push q '{"id":"text","to":"it'\''s \"q\" $(x) `y`","n":" \\ ","flag":""}'
is "$(got text)" "to=it's \"q\" \$(x) \`y\`| n= \\ | flag=| z=z| " 'quotes, blanks, an empty one'
push q '{"id":"escapes","to":"\u00e9\u20ac\ud83d\ude00","n":"a\nb\tc","flag":"\/"}'
is "$(got escapes)" "to=é€😀| n=a b	c| flag=/| z=z| " 'escapes, a pair of surrogates, a newline'
push q '{"id":"numbers","to":1e400,"n":12345678901234567890,"flag":-0.50E+3}'
is "$(got numbers)" 'to=1e400| n=12345678901234567890| flag=-0.50E+3| z=z| ' 'numbers keep their text'
push q '{"id":"words","to":true,"n":false,"flag":null}'
is "$(got words)" 'to=true| n=false| flag=unset| z=z| ' 'true, false, null'
push q '{"id":"inner","to":{"n":1},"n":[2],"x":{"flag":3}}'
is "$(got inner)" 'to=nobody| n=unset| flag=unset| z=z| ' 'objects and lists; env stays'
push q '{"id":"absent"}'
is "$(got absent)" 'to=nobody| n=unset| flag=unset| z=z| ' 'absent'
push q '{"id":"twice","to":"a","to":"b","n":1.5,"n":null}'
is "$(got twice)" 'to=b| n=unset| flag=unset| z=z| ' 'the last of several counts'
push q '{"id":"nul","to":"a\u0000b","n":"\u0000","flag":1}'
is "$(got nul)" 'to=nobody| n=unset| flag=1| z=z| ' 'a NUL: not set'
push q '{"id":"lone","to":"\ud83d","n":1.5}'
is "$(got lone)" 'to=nobody| n=unset| flag=unset| z=z| ' 'half of a pair of surrogates is no JSON'
push q '{"id":"broken","to":"x"'
is "$(got broken)" 'to=nobody| n=unset| flag=unset| z=z| ' 'nor is an object without its end'
long=$(printf '%04096d' 7)
push q "{\"id\":\"long\",\"to\":\"$long\",\"n\":\"${long}8\"}"
is "$(got long)" "to=$long| n=unset| flag=unset| z=z| " 'a value has 4 KiB at most'
push q '{"id":"names","to":"LD_PRELOAD=/tmp/x.so\nRQD_ID=x","n":"n","Z":"y"}'
is "$(got names)" 'to=LD_PRELOAD=/tmp/x.so RQD_ID=x| n=n| flag=unset| z=z| ' 'a value is nothing but a value'
for m in 'not JSON' '["to"]' '' "{\"to\":\"x\",\"pad\":\"$(printf '%070000d' 0)\"}"; do push q "$m"; done
log_wait 10 'event=acked queue=q id=~' 4
is "$(cat "$T"/got.~* | sort | uniq -c | tr -s ' \n' ' ')" ' 4 flag=unset| 4 n=unset| 4 to=nobody| 4 z=z| ' \
    'what is no JSON object, or has more than 64 KiB, sets nothing'

# -- queues of all kinds -------------------------------------------------------------
push plain '{"id":"plain","to":"x"}'
is "$(got plain)" 'to=nobody| n=unset| flag=unset| z=z| ' 'a queue without the option'
push list '{"id":"list","to":"x"}'
is "$(got list)" 'to=x| n=unset| flag=unset| z=z| ' 'kind "list"'
r xadd stream 7-7 message '{"to":"x"}' >/dev/null
is "$(got 7-7)" 'to=x| n=unset| flag=unset| z=z| ' 'kind "stream"'
r xadd stream 7-8 to 5 n 6 >/dev/null
is "$(got 7-8)" 'to=5| n=6| flag=unset| z=z| ' 'and its fields'
r zadd unique 1 unique >/dev/null
is "$(got unique)" 'to=nobody| n=unset| flag=unset| z=z| ' 'kind "unique": the message is an id'
wait_for 10 '[ "$(r publish news "{\"id\":\"news\",\"to\":\"x\"}")" -ge 1 ]'
is "$(got news)" 'to=x| n=unset| flag=unset| z=z| ' 'kind "channel"'
push batch '{"to":"x"}'
wait_ok 10 'grep -qs nobody "$T/batch"' 'a batch has several messages, so none of its own'
push persistent '{"to":"x"}'
wait_ok 10 'grep -qs nobody "$T/persistent"' 'nor has a persistent handler'

# -- the trace id --------------------------------------------------------------------
trace=4bf92f3577b34da6a3ce929d0e0e4736
parent=00-$trace-00f067aa0ba902b7-01
push q "{\"id\":\"traced\",\"n\":1,\"traceparent\":\"$parent\"}"
like "$(got traced 2)" "TRACEPARENT=$parent " 'the variable'
log_wait 10 'event=acked queue=q id=traced'
is "$(log_count "event=[a-z]* queue=q id=traced attempt=[12]( pid=[0-9]*)? trace=$trace ")" "$(log_count 'queue=q id=traced')" \
    'all records of the deliveries have the trace'
is "$(log_lines "id=traced .*trace=$trace" | sed 's/.*event=\([a-z]*\).*/\1/' | sort | uniq -c | tr -s ' \n' ' ')" \
    ' 1 acked 2 delivered 2 output 1 retry ' 'all of these'
push q "{\"id\":\"dead\",\"n\":65,\"traceparent\":\"$parent\"}"
ok 'log_wait 10 "event=dead queue=q id=dead .* trace=$trace "' 'a dead letter'
push q '{"id":"untraced","traceparent":"00-0-0-01"}'
like "$(got untraced)" 'TRACEPARENT=00-0-0-01 ' 'one that is not valid is a variable'
push plain "{\"id\":\"off\",\"traceparent\":\"$parent\"}"
log_wait 10 'event=acked queue=plain id=off'
is "$(log_count '(id=untraced|queue=plain) .*trace=')" 0 'but no trace; nor where the option is not set'

# -- rqctl try, rqd -T, reload --------------------------------------------------------
AS_ROOT='' && [ "$(id -u)" -ne 0 ] || AS_ROOT=yes
echo '{"id":"try","to":"Bonn","n":3}' | "$RQCTL" -c "$T/rqd.conf" try q >"$T/try.out" 2>&1
is "$(got try)" 'to=Bonn| n=3| flag=unset| z=z| ' "rqctl try${AS_ROOT:+ as root}"
"$RQD" -T -c "$T/rqd.conf" >"$T/printed.conf"
like "$(cat "$T/printed.conf")" 'env_message *= \{"TO=to", "N=n", "FLAG=flag", "TRACEPARENT=traceparent"\}' 'rqd -T prints it'
"$RQD" -T -c "$T/printed.conf" | cmp -s - "$T/printed.conf"
is $? 0 'and reads it back'
reloads=0
for names in '"TO=id"' '"FLAG=to", "N=id", "TO=id"' '' '"TO=id", "Z=id"'; do
	seq 100 | sed "s/.*/LPUSH q '{\"id\":\"r$reloads-&\",\"to\":\"t&\"}'/" | r >/dev/null
	sed "s/env_message = {[^}]*}/env_message = {$names}/" "$T/text" | config_write rqd
	rqd_signal HUP
	# A slow daemon may see two signals as one.
	log_wait 20 event=reloaded $((reloads += 1))
done
ok 'log_wait 60 "event=acked queue=q id=r" 400' 'reloads while messages run'
is "$(log_count '(returned|suspended|retry) queue=q id=r')" 0 'disturb none'
push q '{"id":"last","to":"x"}'
is "$(got last)" 'to=last| n=unset| flag=unset| z=last| ' 'and the last one counts'

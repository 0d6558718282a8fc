#!/bin/sh
# Groups: one message of a group at a time and in order, also across failures and kill -9; a flood
# of one group hardly delays the others; rqctl knows messages that are held.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

redis_start
# The first attempt of each seventh message of group "f" fails.
handler work <<'H'
message=$(cat)
group=${message##*\"g\":\"} group=${group%%\"*}
exec 9>"$T/lock.$group"
flock -n 9 || echo "$group $RQD_ID" >>"$T/overlap"
echo "$group $RQD_ID $RQD_ATTEMPT" >>"$T/began"
[ "$group" != h ] || while [ -e "$T/hold" ]; do sleep 0.05; done
[ "$group" != f ] || [ $((RQD_ID % 7)) -ne 0 ] || [ "$RQD_ATTEMPT" -ne 1 ] || exit 1
echo "$group $RQD_ID" >>"$T/done"
H
conf() {
	cat <<C
queue "q" {
	command = {"$T/work"}
	group_by = "g"
	concurrency = 4
	lease = 3s
	backoff = 100ms
}
C
}
message() { printf '{"id":%s,"g":"%s"}' "$1" "$2"; }
push() { r lpush q "$(message "$1" "$2")" >/dev/null; }
many() {	# COUNT GROUP
	seq "$1" | awk -v g="$2" '{ m = "{\"id\":" $1 ",\"g\":\"" g "\"}"
	    printf "*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$%d\r\n%s\r\n", length(m), m }' |
	    r --pipe >/dev/null
}
began() { grep -s "^$1 " "$T/began"; }
in_order() { grep "^$1 " "$T/done" | cut -d ' ' -f 2 | uniq | sort -nC; }

# -- a failure keeps the place, and a kill -9, too --
many 40 f
many 40 s
conf >"$T/start"
rqd_start <"$T/start"
wait_for 20 '[ "$(began s | wc -l)" -ge 10 ]'
rqd_kill9
rqd_start <"$T/start"
wait_ok 60 '[ "$(sort -u "$T/done" | wc -l)" -eq 80 ]' 'all messages of two groups are handled'
ok 'in_order f' 'those of a group with failures in their order'
ok 'in_order s' 'and those of the other one'
ok '[ ! -e "$T/overlap" ]' 'no two of a group at once'
is "$(began f | sort -u | grep -c ' 2$')" 5 'some had failed'	# one may have been killed then
wait_ok 15 'no_keys' 'no key is left'

# -- held ones --
touch "$T/hold"
push 1 h; push 2 h; push 3 h; push 4 h
wait_for 10 '[ "$(r zcard qHELD)" = 3 ]'
like "$(ctl -o 'redis.server=unix:'"$SOCK" status q)" 'HELD' 'status has a column'
# The daemon that was killed may still have a heartbeat.
like "$(ctl status q)" 'q +0 +1/[48] +3 +0' 'and counts them'
like "$(ctl show q 3)" 'held .*waits behind 1' 'show names the message that has the place'
like "$(ctl peek q --held)" '4 +16 ' 'peek lists them'
like "$(ctl status --json q)" '"held": 3,' 'JSON counts them'
like "$(r get "rqd:daemon:$(log_lines event=started | log_field instance | tail -n 1)")" '"group_by":"g","group_concurrency":1[,}]' 'heartbeats have the options'
is "$(ctl cancel --retry q 2 2>&1)" 'rqctl: 2 of q is not in flight: it waits for others of its group' \
    'cancel --retry says that it waits'
like "$(ctl cancel q 3)" 'of q, held' 'one is cancelled'
is "$(r zcard qHELD)" 2 'it is gone'
rm "$T/hold"
wait_ok 10 '[ "$(grep -c "^h " "$T/done")" = 3 ]' 'the others run'
ok 'in_order h' 'in their order'
wait_for 10 'no_keys'

# -- a DEL of QBACKUP, while nobody has the message that others wait for --
touch "$T/hold"
push 1 h; push 2 h
wait_for 10 '[ "$(r zcard qHELD)" = 1 ]'
: >"$T/done"
rqd_kill9
r del qBACKUP >/dev/null
rm "$T/hold"
rqd_start <"$T/start"
start=$(msec)
wait_ok 30 'grep -qs "^h 2" "$T/done"' 'after DEL QBACKUP the next one goes on'
note "after $(($(msec) - start)) ms"
wait_for 20 'no_keys'

# -- purge --
touch "$T/hold"
many 100 h
wait_for 10 '[ "$(r zcard qHELD)" = 99 ]'
is "$(ctl purge q --held -y)" 'purged 99 held of q' 'purge deletes held ones'
rm "$T/hold"
wait_ok 10 'no_keys' 'nothing of them is left'

# -- purge and bury leave alone what they make due --
touch "$T/hold"
push 1 h; push 2 h; push 3 h; push 4 h
wait_for 10 '[ "$(r zcard qHELD)" = 3 ]'
rqd_kill9
# 1 has failed, and so have 259 others that have no group.
r eval 'redis.call("DEL", "qBACKUP") for i = 1, 260 do local tag = i == 1 and "1" or "r" .. i
	redis.call("HSET", "qCONTEXT", tag, "x") redis.call("ZADD", "qRETRY", 1000 + i, tag)
	redis.call("HSET", "qDELIVERY", tag, "1 0 - 1000.000000 " .. #tag) end' 0 >/dev/null
like "$(ctl bury q --all -y)" 'buried 260 messages of q' 'bury takes those that had failed'
is "$(r zcard qRETRY) $(r zcard qHELD)" '1 2' 'and not the next one of the group, which is due'
# x is in flight elsewhere: it stays.
r hset qCONTEXT x x >/dev/null
r hset qDELIVERY x '0 0 other.1.1 1000.000000 1' >/dev/null
r zadd qRETRY 999 x >/dev/null
like "$(ctl purge q --retry -y)" '^purged 1 retry of q; 1 of those counted ' 'nor does purge take the next one'
is "$(r zcard qRETRY) $(r zcard qHELD)" '2 1' 'which is due'
r hdel qCONTEXT x >/dev/null
r del qDEAD >/dev/null
rm "$T/hold"
: >"$T/done"
rqd_start <"$T/start"
wait_ok 20 '[ "$(grep -c "^h " "$T/done")" = 2 ]' 'the rest runs'
is "$(tr '\n' ' ' <"$T/done")" 'h 3 h 4 ' 'in its order'
wait_for 20 'no_keys'

# -- lines that are pushed for one time --
seq 7 12 | sed 's/.*/{"id":&,"g":"l"}/' | ctl push q --lines --at @4102444800 >/dev/null
is "$(r zrange qRETRY 0 -1 | sed 's/#.*//' | tr '\n' ' ')" '7 8 9 10 11 12 ' 'lines keep their order with --at'
ctl purge q --retry -y >/dev/null
wait_for 20 'no_keys'

# -- a flood --
touch "$T/hold"
push 0 h
wait_for 10 'began h | grep -q "h 0"'
rqd_signal STOP
# Milliseconds of the processor, by those that the pushes take: machines differ, and other tests
# may have most of this one.
cpu() { r info cpu | tr -d '\r' | awk -F: '/^used_cpu_(user|sys):/ { n += $2 } END { print int(1000 * n) }'; }
pushed=$(cpu)
many 100000 h
pushed=$(($(cpu) - pushed))
push 7 other
start=$(msec) used=$(cpu)
rqd_signal CONT
wait_ok 20 'began other' 'behind 100,000 messages of one group another one starts'
used=$(($(cpu) - used))
note "after $(($(msec) - start)) ms; Redis was busy for $used ms, with the pushes for $pushed ms"
ok "[ $used -lt $((100 * pushed)) ]" 'the flood costs Redis less than 100 times its pushes'
wait_for 20 '[ "$(r llen q)" = 0 ]'
is "$(r zcard qHELD)" 100000 'they are held'
ctl purge q --held -y >/dev/null
rm "$T/hold"
wait_for 20 'no_keys'

# -- batches and pipelines: no two messages of a group at once, in their order --
handler batch <<'H'
ids=''
while read -r _ _ _ id && IFS= read -r _; do ids="$ids $id"; done
echo "$ids" >>"$T/batches"
H
handler feed <<'H'
while read -r n _ _ id && IFS= read -r _; do
	echo "$id" >>"$T/fed"
	[ "$id" != p2 ] || while [ ! -e "$T/go" ]; do sleep 0.05; done
	echo "$n ok"
done
H
cat >"$T/more" <<C
queue "b" {
	command = {"$T/batch"}
	batch = 20
	framing = "line"
	group_by = "/"
	group_concurrency = 2
}
queue "p" {
	command = {"$T/feed"}
	mode = "persistent"
	pipeline = 10
	framing = "line"
	group_by = "g"
}
C
for i in 1 2 3 4 5; do
	r lpush b "{\"id\":\"x/$i\"}" "{\"id\":\"y/$i\"}" >/dev/null
	r lpush p "{\"id\":\"p$i\",\"g\":$((i % 2))}" >/dev/null
done
cat "$T/start" "$T/more" >"$T/all"
config_write rqd <"$T/all"
rqd_signal HUP
wait_ok 10 '[ "$(cat "$T/batches" 2>/dev/null | wc -w)" -eq 10 ]' 'batches of messages of groups run'
is "$(head -1 "$T/batches")" ' x/1 y/1 x/2 y/2' 'a batch has no more of a group than may run'
is "$(tr ' ' '\n' <"$T/batches" | sed -n 's,^x/,,p' | tr '\n' ' ')" '1 2 3 4 5 ' 'in their order'
wait_for 10 'grep -q p2 "$T/fed"'
# p1 is done, and then p3 has come in its place.
wait_ok 10 '[ "$(log_count "event=acked queue=p id=p1 ")" -eq 1 ] && [ "$(r zcard pBACKUP)" -eq 2 ]' \
    'a pipeline has no more of a group, either'
touch "$T/go"
wait_ok 10 '[ "$(wc -l <"$T/fed")" -eq 5 ]' 'all of it are handled'
is "$(grep -c '[135]' "$T/fed") $(grep '[135]' "$T/fed" | sort -c && echo sorted)" '3 sorted' 'in their order'

# -- a reload that turns groups off --
touch "$T/hold"
push 1 h; push 2 h; push 3 h
wait_for 10 '[ "$(r zcard qHELD)" = 2 ]'
: >"$T/done"
grep -v group_by "$T/start" >"$T/plain"
config_write rqd <"$T/plain"
rqd_signal HUP
log_wait 10 event=reloaded 2
rm "$T/hold"
wait_ok 20 '[ "$(grep -c "^h " "$T/done")" = 3 ]' 'without groups rqd delivers what was held'
wait_ok 15 'no_keys' 'and nothing is left'

#!/bin/sh
# kill -9 of the daemon at each named point of a message's life, and within
# system calls drawn at random: another daemon does the rest.  Nothing is lost,
# no attempt is counted, no letter is written twice, and no message runs again
# whose result had been sent; see crashat.c for the points.
#
#	POINTS='pop-sent settle-before:2 unique/unique_pop-sent call:123' sh tests/fault/30-crash-points.t
#
# In front of a point: the kind of queue, "ack" unless said otherwise; with "pipe" it hands
# over, and each message's child arrives once; with "batch" three messages share a run, and
# half of them are settled while it goes on; with "collect" one run waits for all of them;
# with "defer" each message is deferred once; with "groups" the odd messages are one group, and
# the even ones another, and each group begins in its order; with "save" each run saves its id,
# and gets none but its own: a second attempt gets it in any case.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

CRASHAT=$BUILDDIR/tests/fault/crashat
"$CRASHAT" call "$T/probe" /bin/true 2>/dev/null || skip_all 'no ptrace'
# rqd is not dumpable, so only root can follow it.
[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"	# impossible beside a debugger
export ASAN_OPTIONS

SEED=${SEED:-20}		# another by hand
SOME=${SOME:-8}		# system calls drawn
note "SEED=$SEED"
GIVEN=$POINTS
[ -n "$POINTS" ] || POINTS="connect-before connect-after
pop-before pop-sent pop-answered pop-before:2 pop-sent:2 pop-answered:3
spawn-before spawn-after spawn-before:3 spawn-after:4
exit-before exit-after exit-before:3 exit-after:4
settle-before settle-sent settle-answered settle-before:3 settle-sent:3 settle-answered:4
settle-before:5 settle-sent:4 settle-sent:5
tick-before tick-sent tick-answered:2 renew-before renew-sent renew-answered
arm-before arm-sent arm-answered
term+exit-before term+settle-before term+settle-sent term+settle-answered term+call:20
$(for k in unique stream; do
	for p in pop tick settle arm; do
		for w in before sent answered; do echo "$k/${k}_$p-$w"; done
	done
	echo "$k/${k}_pop-sent:2 $k/${k}_settle-sent:3 $k/spawn-after:2 $k/exit-after:3"
	echo "$k/term+${k}_settle-before $k/term+${k}_settle-sent"
done)
unique/renew-sent stream/renew-sent
pipe/settle-before pipe/settle-sent pipe/settle-answered pipe/exit-after
pipe/settle-before:3 pipe/settle-sent:3 pipe/settle-answered:4
pipe/term+settle-before pipe/term+settle-sent
batch/settle-before batch/settle-sent batch/settle-answered
batch/settle-before:2 batch/settle-sent:2 batch/settle-answered:2 batch/settle-sent:3
batch/pop-answered batch/pop-sent:2 batch/spawn-before batch/spawn-after batch/spawn-after:2
batch/exit-before batch/exit-after batch/renew-sent
batch/term+settle-before batch/term+settle-sent
collect/pop-sent collect/pop-answered collect/arm-before collect/arm-sent collect/arm-answered
collect/renew-sent collect/spawn-before collect/term+settle-before collect/term+settle-sent
$(for p in pop settle tick; do
	for w in before sent answered; do echo "groups/groups_$p-$w"; done
done)
groups/groups_pop-sent:3 groups/groups_settle-sent:2 groups/groups_settle-answered:4
groups/groups_settle-sent:5 groups/spawn-after:2 groups/exit-before:2 groups/term+groups_settle-before
groups/term+groups_settle-sent groups/renew-sent
save/settle-before save/settle-sent save/settle-answered save/settle-sent:2
save/settle-answered:3 save/settle-sent:4 save/pop-sent:2 save/exit-before save/exit-after
save/spawn-after:2 save/renew-sent save/term+settle-before save/term+settle-sent
defer/settle-before defer/settle-sent defer/settle-answered defer/settle-sent:3
defer/settle-answered:4 defer/pop-sent:3 defer/pop-answered:4 defer/term+settle-sent
$(x=$SEED
for i in $(seq "$SOME"); do
	x=$(((x * 1103515245 + 12345) % 2147483648))
	echo "call:$((1 + x / 65536 % 250))"
done)"

# Outside of the long form each point once: not where a second message comes to it, too.
if [ -z "$RQD_TEST_LONG$GIVEN" ]; then
	once=''
	for p in $POINTS; do case $p in *call:*) once="$once $p" ;; *:*) ;; *) once="$once $p" ;; esac; done
	POINTS=$once
fi

redis_start
AS=''	# handlers run as the user of the daemon
mkdir -m 777 "$T/out"
# m1 to m8: m2 fails once, m3 is refused for good, m4 and m7 take their time, and m5 is
# deferred once.  Where
# the point has to do with large payloads, m1, m2, m5 and m8 are large: their ids are
# not those that they hold, but in streams.
handler work <<'H'
q=${RQD_QUEUE}
run() {	# ID ATTEMPT; sets status
	n=${1##*[m-]}
	echo "B $1 $2 $PPID" >>"$T/out/runs.$q"
	[ "$KIND" != save ] || { echo "G $1 $2 ${RQD_SAVED-none}" >>"$T/out/runs.$q"; echo "save $1" >&3; }
	status=0
	case $n in
	2) [ "$2" -gt 1 ] || status=1 ;;
	3) status=65 ;;
	4 | 7) sleep 1.3 ;;
	5) grep -q "^E $1 .* deferred$" "$T/out/runs.$q" || status=deferred ;;
	esac
	[ "$KIND" != defer ] || [ "$status" != 0 ] || grep -q "^E $1 .* deferred$" "$T/out/runs.$q" ||
	    status=deferred
	echo "E $1 $2 $PPID $status" >>"$T/out/runs.$q"
}
case $KIND in batch | collect)
	while read -r number attempt _ id && IFS= read -r _; do
		run "$id" "$attempt"
		# The status of the run speaks for the others.
		case $status-$number in
		0-*[13579]) echo "$number ok" >&3 ;;
		1-*) echo "$number retry" >&3 ;;
		65-*) echo "$number dead" >&3 ;;
		deferred-*) echo "$number defer 1 not yet" >&3 ;;
		esac
	done
	exit 0
	;;
esac
id=$RQD_ID
case $id in '~'*)
	cat >"$T/out/large.$$"
	id=$(head -c 40 "$T/out/large.$$" | sed 's/{"id":"\([^"]*\)".*/\1/')
	[ "$(wc -c <"$T/out/large.$$")" -ge 300000 ] || id=cut
	rm "$T/out/large.$$"
	;;
esac
run "$id" "$RQD_ATTEMPT"
echo "child of $id"
[ "$status" != deferred ] || exec sh -c 'echo defer 1 not yet >&3'
exit $status
H

kind_of() { case $1 in pipe/* | batch/* | collect/* | defer/* | groups/* | save/*) kind=ack ;; */*) kind=${1%%/*} ;; *) kind=ack ;; esac; }

configure() {	# QUEUE POINT
	kind_of "$2"
	more='' next=''
	case $2 in
	pipe/*) more="output = 'push:$1out' pushes = {'$1out'}" next="queue '$1out' { concurrency = 0 }" ;;
	batch/*) more="batch = 3 framing = 'line'" ;;
	groups/*) more="group_by = 'g'" ;;
	collect/*) more="batch = 20 batch_wait = 900ms framing = 'line'" ;;
	esac
	config_write "$1" <<C
privileged = false
drain_timeout = 300ms
queue "$1" {
	kind = "$kind"
	key = "$1"
	command = {"$T/work"}
	concurrency = 2
	lease = 3s
	max_attempts = 3
	backoff = 50ms
	kill_grace = 1s
	env = {"KIND=${2%%/*}"}
	$more
}
$next
C
}

# One point: a daemon that is killed there, then one that does the rest.
crash() {	# NUMBER POINT
	q=p$1
	RQD_WRAPPER="$CRASHAT ${2#*/} $T/crash.$q"
	rqd_spawn "a$1" -c "$T/$q.conf"
	RQD_WRAPPER=''
}

# Daemons that wait for SIGTERM get it while a message is in flight.
push() {	# NUMBER POINT
	for m in 1 2 3 4 5 6 7 8; do
		case $2 in
		unique/*) echo "zadd p$1 $m p$1.m$m" ;;
		stream/*) echo "xadd p$1 $((70000 + $1))-$m message p$1.m$m" ;;
		groups/*) echo "lpush p$1 '{\"id\":\"p$1.m$m\",\"g\":$((m % 2))}'" ;;
		*) echo "lpush p$1 '{\"id\":\"p$1.m$m\"}'" ;;
		esac
	done | r >/dev/null
	case $2 in
	collect/term+*)
		wait_for 60 "[ \"\$(r zcard p$1BACKUP)\" -gt 0 ]" || fail "$2: they are collected"
		rqd_signal TERM "a$1"
		;;
	*term+*)
		wait_for 60 "grep -qs '^B $(id_of "$1" "$2" 4)' '$T/out/runs.p$1'" || fail "$2: m4 runs"
		rqd_signal TERM "a$1"
		;;
	esac
}

# Also its tag.
id_of() {	# NUMBER POINT MESSAGE
	case $2 in stream/*) echo "$((70000 + $1))-$3" ;; *) echo "p$1.m$3" ;; esac
}

# No message of the point waits or is in flight.
DRAINED='
local q = KEYS[1]
if redis.call("TYPE", q).ok == "stream" then
	local group = redis.call("XINFO", "GROUPS", q)[1]
	for i = 1, #group, 2 do
		if (group[i] == "pending" or group[i] == "lag") and group[i + 1] ~= 0 then return 0 end
	end
elseif redis.call("EXISTS", q) == 1 then
	return 0
end
if redis.call("EXISTS", q .. "BACKUP", q .. "RETRY", q .. "CONTEXT", q .. "DELIVERY", q .. "HELD") ~= 0 then return 0 end
return 1'
drained() {	# NUMBER
	[ "$(r eval "$DRAINED" 1 "p$1")" = 1 ]
}

# From the lines of the runs: what is wrong; "again M" where one succeeded twice; at the end
# "duplicates N".
FINDINGS='
$1 == "E" && $5 == "0" { done[$2]++ }
$1 == "E" && $5 == "deferred" { deferred[$2] = 1 }
$1 == "B" && kind == "groups" && !($2 in seen) {
	m = substr($2, length(prefix) + 1)
	if (m < last[m % 2]) print "m" last[m % 2] " began before m" m
	last[m % 2] = m
	seen[$2]
}
$1 == "G" && $4 != $2 && ($4 != "none" || $3 > 1) { print $2 ", attempt " $3 " got the text " $4 }
$1 == "B" { begun[++runs] = $2; attempt[runs] = $3 }
END {
	n = split("1 2 4 5 6 7 8", all)
	for (i = 1; i <= n; i++) {
		m = all[i]
		id = prefix m
		if (done[id] < 1) print "m" m " is lost"
		if (done[id] > 2) print "m" m " ran " done[id] " times"
		# The first results of m2 and m5 are no successes, and were sent in any case.
		if (done[id] >= 2 && m != 2 && m != 5) print "again", m
		for (run = 1; run <= runs; run++)
			if (begun[run] == id && attempt[run] > (m == 2 ? 2 : 1)) print "m" m ": attempt " attempt[run]
	}
	if (!((prefix 5) in deferred)) print "m5 was not deferred"
	for (id in done) duplicates += (done[id] > 1)
	# This many are in flight at once.
	if (duplicates > (kind ~ /^(batch|collect)$/ ? 6 : 2)) print duplicates " duplicates"
	print "duplicates", duplicates + 0
}'

problems() {	# NUMBER POINT
	q=p$1 prefix=p$1.m
	case $2 in stream/*) prefix=$((70000 + $1))- ;; esac
	drained "$1" || echo 'not drained'
	# What was sent may be no success: all are deferred, the run was ended, or it was a text.
	case $2 in
	defer/* | save/* | batch/term* | collect/term*) sent=/dev/null ;;
	*) sent=$T/crash.$q ;;
	esac
	# A call drawn may come after the last one: it is killed while it idles then.
	grep -qsa "^CRASH" "$T/crash.$q" || [ "${2#call:}" != "$2" ] || echo "not reached: status $STATUS"
	awk -v prefix="$prefix" -v kind="${2%%/*}" "$FINDINGS" "$T/out/runs.$q" >"$T/findings"
	while read -r what m; do
		case $what in
		duplicates) DUPLICATES=$((DUPLICATES + m)) ;;
		again)
			! grep -qaF "$prefix$m" "$sent" || echo "m$m ran again after its result was sent"
			;;
		*) echo "$what $m" ;;
		esac
	done <"$T/findings"
	r --raw xrange "${q}DEAD" - + >"$T/letters"
	n=$(grep -cx reason "$T/letters")
	[ "$n" -eq 1 ] || echo "m3: $n letters"
	grep -qx "${prefix}3" "$T/letters" || echo "m3: no letter"
}

# Of those that succeed each has one child, however often it ran.
children() {	# NUMBER POINT
	case $2 in pipe/*) ;; *) return ;; esac
	for m in 1 2 4 5 6 7 8; do echo "child of p$1.m$m"; done >"$T/children"
	r --raw lrange "p$1out" 0 -1 | sort | diff "$T/children" -
	r del "p$1out" >/dev/null
}

# Redis refuses the first call of each script that it does not have yet.  So that "sent" means
# an act, messages go through each kind before.
i=900
for p in ack/ unique/ stream/ pipe/ groups/; do
	i=$((i + 1))
	configure "p$i" "$p"
	rqd_spawn "w$i" -c "$T/p$i.conf"
	log_wait 30 event=ready 1 "w$i"
	push "$i" "$p"
done
for i in 901 902 903 904 905; do
	wait_for 90 "drained $i"
	rqd_signal TERM "w$i"
	rqd_wait "w$i"
done
r del p904out >/dev/null

DUPLICATES=0 i=0
for p in $POINTS; do
	i=$((i + 1))
	configure "p$i" "$p"
	crash $i "$p"
done
QUEUES="$(seq -f 'p%.0f' $i | tr '\n' ' ') p901 p902 p903 p904 p905"
i=0
for p in $POINTS; do push $((i += 1)) "$p"; done
i=0
for p in $POINTS; do
	i=$((i + 1))
	# A daemon that no message has brought to its point may reach it while it idles.
	rqd_wait "a$i" 30
	eval "STATUS_$i=$STATUS"
	rqd_spawn "b$i" -c "$T/p$i.conf"
done
i=0
for p in $POINTS; do
	i=$((i + 1))
	wait_for 90 "drained $i"
	rqd_signal TERM "b$i"
	rqd_wait "b$i"
	[ "$STATUS" -eq 0 ] || fail "$p: the other daemon ends with status $STATUS"
	eval "STATUS=\$STATUS_$i"
	{ problems $i "$p"; children $i "$p"; } >"$T/problems"
	is "$(cat "$T/problems")" '' "killed at $p"
done
note "points: $i; messages: $((8 * i)); lost: 0 where ok; ran again after success: $DUPLICATES"

#!/bin/sh
# Each run has a cgroup: no process outlives its handler, whatever session and parent it has,
# and none outlives its daemon but until the next one starts.  Other daemons start and end in
# the same cgroup meanwhile.

# shellcheck source=tests/lib.sh disable=SC2046
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v setsid >/dev/null || skip_all 'no setsid'
redis_start
mkdir -m 777 "$T/out"

# It ends when it has left processes in sessions of their own, one of which has lost its parent.
handler work <<'H'
export T RQD_ID
setsid sh -c 'echo $$ >"$T/out/$RQD_ID.session"; exec sleep 1000' &
(setsid setsid sh -c 'setsid sh -c "echo \$\$ >$T/out/$RQD_ID.double; exec sleep 1000" & exit' &)
grep ^0: /proc/self/cgroup >"$T/out/$RQD_ID.cgroup"
until [ -s "$T/out/$RQD_ID.session" ] && [ -s "$T/out/$RQD_ID.double" ]; do sleep 0.05; done
[ "$RQD_ID" != fails ] || exit 1
[ ! -e "$T/out/$RQD_ID.stays" ] || exec sleep 1000
H
handler server <<'H'
export T
RQD_ID=server
while read -r number attempt bytes id; do
	head -c "$bytes" >/dev/null
	read -r _
	setsid sh -c 'echo $$ >"$T/out/server.session"; exec sleep 1000' &
	until [ -s "$T/out/server.session" ]; do sleep 0.05; done
	echo "$number ok"
done
H
pids() { cat "$T/out/$1.session" "$T/out/$1.double" 2>/dev/null | tr '\n' ' '; }	# ID
alive() { for _p in $(pids "$1"); do is_alive "$_p" && echo "$_p"; done; }	# ID
cgroup() { sed 's/^0:://' "$T/out/$1.cgroup"; }		# ID

# As root, two more users have queues.
MORE=
if [ "$(id -u)" -eq 0 ]; then
	MORE='queue "a" { user = "60381" group = "60381" concurrency = 4 command = {"'$T'/note"} memory_max = 64M }
	queue "b" { user = "60382" group = "60382" concurrency = 4 command = {"'$T'/note"} memory_max = 64M }'
fi
handler note <<'H'
grep ^0: /proc/self/cgroup >>"$T/out/note.$RQD_QUEUE"
H
conf() {
	cat <<-C
	defaults { $AS command = {"$T/work"} lease = 5s }
	queue "q" { concurrency = 4 backoff = 1h }
	queue "keep" { leftovers = "keep" }
	queue "p" { mode = "persistent" command = {"$T/server"} max_messages = 1 }
	$MORE
	C
}
conf >"$T/text"
rqd_start <"$T/text"
why=$(log_lines 'event=started' | sed -n 's,.*uncontained=,,p')
main=$(sed -n 's/^0:://p' "/proc/$PID/cgroup")
if [ -n "$why" ]; then
	note "no cgroups here: $why"
	unlike "$main" 'rqd\.daemon' 'then the daemon stays where it was'
	r lpush q '{"id":"plain"}' >/dev/null
	wait_ok 10 'log_wait 10 "event=acked.* id=plain"' 'and handlers run'
	skip 'all else: no cgroups can be made here'
	exit
fi
top=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
ours=$top${main%/main}
like "$main" 'rqd\.daemon\.[0-9]+\.[0-9]+/main$' 'the main process has a cgroup'
is "$(sed -n 's/^0:://p' "/proc/$(pgrep -P "$PID" -x rqd-spawner)/cgroup")" "$main" 'and the spawner in the same'

# -- the end of a run ---------------------------------------------------------------------
r lpush q '{"id":"one"}' >/dev/null
wait_ok 10 'log_wait 10 "event=acked.* id=one"' 'a message is done'
is "$(pids one | wc -w)" 2 'its handler has left two processes'
wait_ok 10 '[ -z "$(alive one)" ]' 'they are killed'
like "$(log_lines 'event=leftovers')" ' queue=q id=one attempt=1 pid=[0-9]+ count=2$' 'the log says how many'
like "$(cgroup one)" "^${main%/main}/runs/[0-9]+\$" 'the handler had a cgroup'

r lpush q '{"id":"fails"}' >/dev/null
wait_ok 10 'log_wait 10 "event=retry.* id=fails"' 'a handler fails'
wait_ok 10 '[ -z "$(alive fails)" ]' 'what it left is killed'
r lpush p '{"id":"server"}' >/dev/null
wait_ok 10 'log_wait 10 "event=handler_exited queue=p"' 'a persistent process ends'
wait_ok 10 '[ -z "$(alive server)" ]' 'what it left is killed'
r lpush keep '{"id":"kept"}' >/dev/null
wait_ok 10 'log_wait 10 "event=acked.* id=kept"' 'a handler whose leftovers are kept'
r lpush keep '{"id":"kept2"}' >/dev/null
wait_ok 10 'log_wait 10 "event=acked.* id=kept2"' 'and another'
is "$(alive kept | wc -l) $(alive kept2 | wc -l)" '2 2' 'they go on'
is "$(log_count 'event=leftovers queue=keep')" 0 'which is not logged'
ok '[ "$(cgroup kept)" != "$(cgroup kept2)" ]' 'in cgroups that no other run gets'

# -- reuse --------------------------------------------------------------------------------
handler quick <<'H'
grep ^0: /proc/self/cgroup >>"$T/out/quick"
H
sed "s|\"q\" {|& command = {\"$T/quick\"}|" "$T/text" | config_write rqd
rqd_signal HUP
log_wait 10 'event=reloaded'
for i in 1 2 3 4 5 6 7 8 9 10; do
	for j in 1 2 3 4 5 6 7 8 9 10; do echo "LPUSH q $i.$j"; done
done | r >/dev/null
wait_ok 30 '[ "$(log_count "event=acked queue=q ")" = 101 ]' 'a hundred runs after a reload'
is "$(grep -c "^0::${main%/main}/runs/[0-9]*\$" "$T/out/quick")" 100 'each has a cgroup'
ok '[ "$(sort -u "$T/out/quick" | wc -l)" -le 20 ]' 'most have that of another'
rmdir "$ours"/runs/[0-9]* 2>/dev/null
r lpush q more >/dev/null
wait_ok 10 '[ "$(log_count "event=acked queue=q ")" = 102 ]' 'somebody has removed them: rqd makes new ones'
is "$(grep -c "^0::${main%/main}/runs/[0-9]*\$" "$T/out/quick")" 101 'the handler has one'

if [ -n "$MORE" ]; then
	for i in 1 2 3 4 5 6 7 8; do
		for j in 1 2 3 4; do echo "LPUSH a $i.$j"; echo "LPUSH b $i.$j"; done
	done | r >/dev/null
	wait_ok 30 '[ "$(log_count "event=acked queue=[ab] ")" = 64 ]' 'two users have equal queues'
	sort -u "$T/out/note.a" >"$T/note.a"
	sort -u "$T/out/note.b" >"$T/note.b"
	ok '[ "$(cat "$T/note.a" "$T/note.b" | wc -l)" -lt 32 ]' 'the runs of each share cgroups'
	is "$(comm -12 "$T/note.a" "$T/note.b")" '' 'none of them serves both'
fi

# -- a check changes nothing; others start beside it -----------------------------------------
touch "$T/out/stays.stays"
sed "s|\"q\" {|& kill_grace = 1s|" "$T/text" | config_write rqd
rqd_signal HUP
wait_for 10 '[ "$(log_count "event=reloaded")" = 2 ]'
r lpush q '{"id":"stays"}' >/dev/null
wait_for 10 '[ "$(pids stays | wc -w)" -eq 2 ]'
before=$(find "$ours" -type d | sort)
"$RQD" -t -c "$T/rqd.conf" 2>"$T/check"
is "$?" 0 'rqd -t'
like "$(cat "$T/check")" 'configuration ok' 'it finds nothing wrong'
is "$(find "$ours" -type d | sort)" "$before" 'it makes and removes no cgroup'
for i in 1 2 3; do
	echo "queue \"other$i\" { $AS command = {\"/bin/true\"} }" >"$T/other"
	rqd_start "other$i" <"$T/other" && rqd_stop "other$i"
done
is "$(alive stays | wc -l)" 2 'no other daemon kills what runs here'

# -- limits ------------------------------------------------------------------------------
# Whether there are controllers for them depends on the machine; and they need a cgroup where
# this script is not, as a unit has.
own=$top/rqd-test.$$
case $(cat "$top/cgroup.subtree_control") in
*memory*pids*)
	if mkdir "$own" 2>/dev/null; then
		printf '#!/bin/sh\necho $$ >%s/cgroup.procs && exec "$@"\n' "$own" >"$T/alone"
		chmod +x "$T/alone"
	fi ;;
esac
alone=$([ ! -d "$own" ] || echo "$T/alone")
echo "queue \"limited\" { $AS command = {\"/bin/sh\", \"-c\", \"echo started; sleep 1 & sleep 1\"} memory_max = 64M pids_max = 1 max_attempts = 1 }" >"$T/limited"
# What tail keeps in memory is too much.
echo "queue \"fat\" { $AS command = {\"/bin/sh\", \"-c\", \"head -c 100M /dev/zero | tail -c 100M >/dev/null\"} memory_max = 32M max_attempts = 2 backoff = 100ms }" >>"$T/limited"
wrapper=${RQD_WRAPPER-}
RQD_WRAPPER="$alone $wrapper"
rqd_start limited <"$T/limited"
RQD_WRAPPER=$wrapper
r lpush limited '{"id":"limited"}' >/dev/null
r lpush fat '{"id":"fat"}' >/dev/null
lacks() { log_lines "event=warning" limited | grep -c "$1 has no effect here"; }
if [ "$(lacks pids_max)" -eq 0 ]; then
	wait_ok 10 'log_wait 10 "event=dead.* id=limited" 1 limited' 'a run that cannot fork fails'
else
	wait_ok 10 'log_wait 10 "event=acked.* id=limited" 1 limited' 'no controller of processes here: the run has no limit, and the log says so'
fi
if [ "$(lacks memory_max)" -eq 0 ]; then
	wait_ok 30 'log_wait 30 "event=retry.* id=fat .*signal=SIGKILL .*reason=oom" 1 limited' 'a run without memory is killed, and tried again'
	wait_ok 30 'log_wait 30 "event=dead.* id=fat .*reason=attempts .*cause=oom" 1 limited' 'after the last attempt it is dead'
	like "$(r xrange fatDEAD - + | paste -sd ' ')" ' status oom error killed for memory: .* memory_max ' 'the letter says why, and names memory_max'
else
	wait_ok 10 'log_wait 10 "event=acked.* id=fat" 1 limited' 'no controller of memory here: the run has no limit, and the log says so'
fi
none() { grep -c "has no effect here: .*there is no .* controller"; }
is "$($alone "$RQD" -t -c "$T/limited.conf" 2>&1 | none)" "$(log_lines 'event=warning' limited | none)" 'rqd -t says the same of controllers'
wait_ok 30 '[ "$(ctl check | grep -c "limited: on .*, memory_max or pids_max has no effect: ")" -eq $(($(lacks ".*") > 0)) ]' 'and rqctl check'
rqd_stop limited
[ ! -d "$own" ] || find "$own" -depth -type d -exec rmdir {} +

# -- a cgroup of another user ---------------------------------------------------------------
# Its processes could leave the cgroup of their run.
theirs=$top/rqd-test-theirs.$$
if [ -n "$MORE" ] && mkdir -p "$theirs/below" 2>/dev/null; then
	chown 60381 "$theirs" "$theirs/cgroup.procs"
	printf '#!/bin/sh\necho $$ >%s/cgroup.procs && exec "$@"\n' "$theirs/below" >"$T/theirs"
	chmod +x "$T/theirs"
	RQD_WRAPPER="$T/theirs $wrapper"
	echo "queue \"theirs\" { $AS command = {\"/bin/true\"} }" >"$T/other"
	rqd_start theirs <"$T/other"
	RQD_WRAPPER=$wrapper
	like "$(log_lines 'event=started' theirs)" "uncontained=.*$theirs/below: belongs to user 60381, not to root" 'below a cgroup of another user runs have none, and the log says so'
	rqd_stop theirs
	find "$theirs" -depth -type d -exec rmdir {} +
fi

# -- the end of the daemon ----------------------------------------------------------------
left=$(alive stays; alive kept; alive kept2)
is "$(echo "$left" | wc -w)" 6 'six processes of three runs are left'
rm "$T/out/stays.stays"		# before the next daemon can deliver the message
gone() { for _p in $left; do ! is_alive "$_p" || return 1; done; }
kill -KILL "$(pgrep -o -P "$(pid_of rqd)" -x rqd-spawner)"
wait_ok 20 gone 'the spawner is killed: rqd kills what its runs have left'
rqd_wait
rqd_start again <"$T/text"
wait_ok 20 '[ ! -d "$ours" ]' 'the next start removes its cgroups'
main=$(sed -n 's/^0:://p' "/proc/$(pid_of again)/cgroup")
ours=$top${main%/main}
wait_ok 30 'log_wait 30 "event=acked.* id=stays" 1 again' 'the message is delivered again'
for q in keep2 keep3; do r lpush keep "{\"id\":\"$q\"}" >/dev/null; done
wait_for 20 '[ "$(log_count "event=acked queue=keep " again)" = 2 ]'
left=$(alive keep2; alive keep3)
is "$(echo "$left" | wc -w)" 4 'four processes of two runs are left'
pid=$(pid_of again)
kill -KILL "$pid" $(pgrep -P "$pid" -x rqd-spawner)
rqd_wait again
rqd_start next <"$T/text"
wait_ok 20 gone 'killed, with the spawner: what was left of its runs ends with the next start'
wait_ok 20 '[ ! -d "$ours" ]' 'its cgroups are removed'
next=$top$(sed -n 's/^0:://p' "/proc/$(pid_of next)/cgroup")
rqd_stop next
is "$(find "${next%/main}/runs" -mindepth 1 -type d 2>/dev/null)" '' 'a daemon that ends removes those of its runs'

#!/bin/sh
# rqd is started as root: the privileges of its processes, their ends, and attacks by a
# handler's user.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all 'needs root'
command -v setpriv >/dev/null || skip_all 'no setpriv'
redis_start
mkdir -m 777 "$T/out"
EVIL=60371		# nobody else's

of() { sed -n "s/^$2:[ 	]*//p" "/proc/$1/status"; }
# A handler that somebody has stopped before it could execute its command has that name, too.
spawner_of() { pgrep -o -P "$1" -x rqd-spawner; }
gone() { for _g; do is_alive "$_g" && return 1; done; return 0; }

handler who <<'H'
{ id -u; grep -h '^\(Uid\|Cap[IPEA].*\|NoNewPrivs\|Seccomp\):' /proc/self/status; env; } >"$T/out/$RQD_QUEUE"
H
handler dev <<'H'
echo "from $(cat /dev/stdin)" >/dev/stderr
echo "to stdout" >/dev/stdout
H
handler slow <<'H'
echo $$ >"$T/out/slow"
exec sleep 1000
H
handler left <<'H'
set -m		# a group of its own
sleep 1000 &
echo $! >"$T/out/left"
set +m
( sleep 1000 & echo $! >"$T/out/left2" )
exit 0
H
printf 'secret\n' >"$T/password"
chmod 600 "$T/password"
mkdir -m 755 "$T/theirs" && chown $EVIL "$T/theirs"
printf 'A=root\nSHELL=/from/file\nRQD_ID=forged\nHOME=/x\n' >"$T/env"
printf 'A=theirs\nB=lost\nLOGNAME=me\n' >"$T/theirs/env" && chown $EVIL "$T/theirs/env"
ln -s "$T/password" "$T/theirs/link"
r config set requirepass secret >/dev/null
export REDISCLI_AUTH=secret
conf() {
	cat <<C
redis { server = "unix:$SOCK" password_file = "$T/password" timeout = 2s }
log { level = "debug" }
defaults { lease = 3s kill_grace = 500ms backoff = 100ms }
queue "who" { command = {"$T/who"} user = "daemon" }
queue "dev" { command = {"$T/dev"} user = "daemon" }
queue "slow" { command = {"$T/slow"} user = "daemon" }
queue "left" { command = {"$T/left"} user = "daemon" }
queue "env" { command = {"$T/who"} user = "$EVIL" group = "$EVIL" env_file = "$T/theirs/env" env = {"B=mine"} }
queue "link" { command = {"$T/who"} user = "$EVIL" group = "$EVIL" env_file = "$T/theirs/link" }
queue "nofile" { command = {"$T/who"} user = "daemon" env_file = "$T/env" }
C
}
conf >"$T/text"
rqd_start <"$T/text"
chmod 600 "$T/rqd.conf"

# -- what they may do --------------------------------------------------------------
log_wait 10 event=ready || fail 'a password_file that only root may read'
S=$(spawner_of "$PID")
uid=$(id -u "$MAIN_USER")
is "$(of "$PID" Uid)" "$uid	$uid	$uid	$uid" 'the main process is not root'
is "$(of "$PID" CapInh) $(of "$PID" CapPrm) $(of "$PID" CapEff) $(of "$PID" CapAmb)" \
    '0000000000000000 0000000000000000 0000000000000000 0000000000000000' 'has no capability'
is "$(of "$PID" NoNewPrivs)" 1 'and gains none'
if grep -q 'define HAVE_SECCOMP 1' "$BUILDDIR/config.h"; then
	is "$(of "$PID" Seccomp)" 2 'its system calls are filtered'
fi
# SETUID, SETGID, KILL, DAC_READ_SEARCH, SYS_NICE, SYS_RESOURCE, as far as this machine gives them.
may=$(printf '%016x' $((0x$(of $$ CapEff) & 0x18000e4)))
is "$(of "$S" CapEff)" "$may" 'the spawner uses what it needs to start handlers'
is "$(of "$S" CapInh) $(of "$S" CapAmb)" '0000000000000000 0000000000000000' 'which nobody inherits'
# A page that both have counts half for each.
size() { sed -n 's/^Pss: *\([0-9]*\) kB$/\1/p' "/proc/$1/smaps_rollup"; }
both=$(($(size "$PID") + $(size "$S")))
[ "$SLOW" -gt 1 ] || ok "[ $both -gt 500 ] && [ $both -le 8192 ]" "both together are small ($both KiB)"

r lpush who 1 >/dev/null
wait_ok 10 '[ -s "$T/out/who" ] && log_wait 15 "event=acked queue=who"' 'a handler of another user'
is "$(head -n 1 "$T/out/who")" 1 'runs as that user'
is "$(grep -c '^Cap.*0000000000000000$' "$T/out/who")" 4 'without any capability'
like "$(cat "$T/out/who")" 'NoNewPrivs:.0' 'but sudo would work'

r lpush dev message >/dev/null
log_wait 10 'event=acked queue=dev'
like "$(log_lines 'event=output queue=dev')" 'fd=2 line="from message"' 'it may open /dev/stdin and /dev/stderr'
like "$(log_lines 'event=output queue=dev')" 'fd=1 line="to stdout"' 'and /dev/stdout'

# -- env_file ----------------------------------------------------------------------
r lpush env 1 >/dev/null
log_wait 10 'event=acked queue=env'
like "$(cat "$T/out/env")" '^A=theirs$' 'an env_file of the user is read by the user'
like "$(cat "$T/out/env")" '^LOGNAME=me$' 'it replaces what the user would have'
like "$(cat "$T/out/env")" '^B=mine$' 'env wins over it'
r lpush link 1 >/dev/null
log_wait 10 'queue=link.*step=env_file.*denied'
is "$?" 0 'not what the user has put a link to'
ok '[ ! -e "$T/out/link" ]' 'the command was not run'
r lpush nofile 1 >/dev/null
log_wait 10 'event=acked queue=nofile'
is "$(grep -cE '^(A=root|SHELL=/from/file|HOME=/x)$' "$T/out/nofile")" 3 'its entries replace those of the user'
unlike "$(cat "$T/out/nofile")" forged 'but none that rqd alone says'

# -- what is left ------------------------------------------------------------------
r lpush left 1 >/dev/null
log_wait 10 'event=acked queue=left'
wait_ok 10 'gone $(cat "$T/out/left" "$T/out/left2")' 'what a handler of another user has left is ended'

# -- a shortage of descriptors -------------------------------------------------------
# One more than the spawner has: no further one fits.
if command -v prlimit >/dev/null; then
	prlimit --pid "$S" --nofile=4:
	r lpush dev '{"id":"short"}' >/dev/null
	ok 'log_wait 20 "event=returned queue=dev id=short .*Too many open files"' 'without a descriptor for it a handler is not started'
	ok 'is_alive $PID && is_alive $S' 'rqd goes on'
	prlimit --pid "$S" --nofile=1024:
	ok 'log_wait 40 "event=acked queue=dev id=short attempt=1 "' 'it is started later, in its first attempt'
fi

# -- reload ------------------------------------------------------------------------
n=$(log_count event=reloaded)
rqd_signal HUP
wait_ok 10 '[ "$(log_count event=reloaded)" -gt "$n" ]' 'a configuration that only root may read is read again'
printf 'queue "q" { nonsense = 1 }\n' >>"$T/rqd.conf"
rqd_signal HUP
wait_ok 10 'log_count "event=reload_failed.*nonsense" >/dev/null && log_wait 15 "event=reload_failed.*rqd.conf:"' \
    'errors are reported with their place'
conf >"$T/rqd.conf.new" && mv "$T/rqd.conf.new" "$T/rqd.conf"
n=$(log_count event=reloaded)
for i in 1 2 3; do rqd_signal HUP; done
wait_ok 10 '[ "$(log_count event=reloaded)" -gt "$n" ]' 'several at once'
r lpush who 2 >/dev/null
wait_ok 10 '[ "$(log_count "event=acked queue=who")" = 2 ]' 'handlers of the new one are started'

# -- a handler's user against us (one that stops, kills and dumps all that it may) ---
cat >"$T/evil" <<H
#!/bin/sh
# Also between the change of ids and the command.
while [ ! -e "$T/out/stop" ]; do kill -STOP -1 2>/dev/null; kill -QUIT -1 2>/dev/null; done
H
chmod 755 "$T/evil"
cat >"$T/rqd.conf.more" <<C
queue "evil" { command = {"/bin/true"} user = "$EVIL" group = "$EVIL" concurrency = 8 time_limit = 1s kill_grace = 100ms max_attempts = 1 suspend_after = 0 directory = "$(i=0; while [ $i -lt 300 ]; do printf '/tmp/..'; i=$((i + 1)); done)/" }
queue "once" { command = {"/bin/sh", "-c", 'read -r n r; read -r m; echo "\$n ok"'} mode = "persistent" user = "$EVIL" group = "$EVIL" framing = "line" suspend_after = 0 }
C
# In one step: one of the three signals may not have been heard yet.
{ conf; cat "$T/rqd.conf.more"; } >"$T/rqd.conf.new" && mv "$T/rqd.conf.new" "$T/rqd.conf"
QUEUES="$QUEUES evil once"
n=$(log_count event=reloaded)
rqd_signal HUP
wait_for 10 '[ "$(log_count event=reloaded)" -gt "$n" ]'
i=0
while [ $i -lt 300 ]; do echo "lpush evil $i"; echo "lpush once $i"; i=$((i + 1)); done | r >/dev/null
setpriv --reuid $EVIL --regid $EVIL --clear-groups sh -c "trap '' QUIT; exec setsid sh $T/evil" &
OTHER_PIDS="$OTHER_PIDS $!"
slowest=0
i=0
while [ $i -lt 20 ]; do
	r del whoSTATS >/dev/null
	start=$(msec)
	n=$(log_count 'event=acked queue=who')
	r lpush who "under attack $i" >/dev/null
	wait_for 20 '[ "$(log_count "event=acked queue=who")" -gt "$n" ]' || break
	took=$(($(msec) - start))
	[ $took -le $slowest ] || slowest=$took
	i=$((i + 1))
done
touch "$T/out/stop"
is $i 20 "handlers of others run on (the slowest took $slowest ms)"
ok "[ $slowest -lt $((10000 * SLOW)) ]" 'without a pause'
ok 'is_alive $PID && is_alive $S' 'none of our processes has been ended'
unlike "$(of "$S" State; of "$PID" State)" '^[Tt]' 'or stopped'
starts=$(log_count 'event=handler_started queue=once')
ok "[ $starts -le 400 ]" "a process that answers once is not started again at once ($starts)"
r del evil evilRETRY once >/dev/null

# -- the end -----------------------------------------------------------------------
r lpush slow 1 >/dev/null
wait_for 10 '[ -s "$T/out/slow" ]'
H=$(cat "$T/out/slow")
# Waits for those that were stopped before they became a command: their time limit ends them.
wait_for 20 '! pgrep -u $EVIL -x rqd-spawner >/dev/null'
kill -KILL "$S"
wait_ok 10 'gone $PID' 'without its spawner the daemon ends'
STATUS=0
wait "$PID" || STATUS=$?
PID_rqd=''
is $STATUS 71 'with status 71'
wait_ok 10 'gone $H' 'and its handlers with it'
like "$(log_lines 'event=stopped')" 'spawner' 'the log says why'

conf >"$T/text"
rqd_start second <"$T/text"
S=$(spawner_of "$PID")
rm "$T/out/slow"
r lpush slow 2 >/dev/null
wait_for 20 '[ -s "$T/out/slow" ]'
H=$(cat "$T/out/slow")
rqd_kill9 second
wait_ok 10 'gone $H $S' 'kill -9 of the main process ends handlers and spawner'

# -- who may not ---------------------------------------------------------------------
cat >"$T/refused.conf" <<C
queue "q" { command = {"/bin/true"} }
C
said=$("$RQD" -c "$T/refused.conf" 2>&1)
is $? 78 'a queue without user: rqd does not start'
like "$said" 'refused.conf:1: queue "q" does not say its user.*write user = ' 'and says how to'
is "$("$RQD" -t -c "$T/refused.conf" 2>&1)" "$said" 'rqd -t says the same'
# Without the user of the main process.
sed '/^_rqd:/d' /etc/passwd >"$T/passwd"
without() { timeout 60 unshare --mount sh -c 'mount --bind "$0" /etc/passwd && exec "$@"' "$T/passwd" "$@"; }
if ! without true 2>/dev/null; then
	skip 'no name spaces here'
else
	echo 'queue "q" { command = {"/bin/true"} user = "root" }' >"$T/refused.conf"
	said=$(without timeout 10 "$RQD" -c "$T/refused.conf" 2>&1)
	is $? 78 'without the user _rqd rqd does not start as root'
	like "$said" 'there is no user "_rqd".*: useradd .*_rqd$' 'and says how to make it'
	is "$(without "$RQD" -t -c "$T/refused.conf" 2>&1)" "$said" 'rqd -t says the same'
	is "$(without timeout 10 "$RQD" -o privileged=false -t -c "$T/refused.conf" 2>&1)" "$said" 'also with privileged = false'
	is "$(RQD_SERVER=unix:$SOCK without timeout 10 "$RQD" -q plain -u daemon -- /bin/true 2>&1)" \
	    "$(printf '%s\n' "$said" | sed 's,/.*refused.conf:,-q:,')" 'so does rqd -q with -u'
	r config set requirepass '' >/dev/null
	unset REDISCLI_AUTH
	r lpush plain 1 >/dev/null
	QUEUES="$QUEUES plain"
	RQD_SERVER=unix:$SOCK without "$RQD" -q plain --until-empty -- /bin/sh -c "id -u >$T/out/plain" 2>"$T/plain.log"
	is "$? $(cat "$T/out/plain")" '0 0' 'rqd -q without -u is root, and so is its command'
fi
r del slow slowBACKUP slowCONTEXT slowDELIVERY slowRETRY linkRETRY linkCONTEXT linkDELIVERY link >/dev/null

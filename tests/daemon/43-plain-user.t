#!/bin/sh
# An ordinary user runs rqd without root.  If the tests run as root, this one becomes
# such a user, with programs and files that anybody may read.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

ME=$(id -u) GROUP=$(id -g)
if [ "$ME" -eq 0 ]; then
	ME=65534 GROUP=65534
	command -v setpriv >/dev/null || skip_all 'no setpriv'
	umask 0
	mkdir -m 755 "$T/bin"
	cp "$RQD" "$RQCTL" "$T/bin"
	RQD=$T/bin/rqd RQCTL=$T/bin/rqctl
	RQD_WRAPPER="setpriv --reuid $ME --regid $GROUP --clear-groups $RQD_WRAPPER"
fi
AS=''
mkdir -m 777 "$T/out"
redis_start --unixsocketperm 777

rqd() {	# ARGUMENT...; status in $status, what it says in $T/2
	timeout $((20 * SLOW)) $RQD_WRAPPER "$RQD" "$@" >"$T/1" 2>"$T/2" </dev/null
	status=$?
}

# -- without a configuration -------------------------------------------------------
QUEUES='hello'
rqd_run line -o "redis.server=unix:$SOCK" -q hello -- /bin/sh -c "{ cat; id -u; id -g; id -G; } >$T/out/hello"
r lpush hello 'a line
' >/dev/null
log_wait 10 'event=acked queue=hello' 1 line
is "$(head -n 3 "$T/out/hello" | tr '\n' ' ')" "a line $ME $GROUP " 'rqd -q: runs as who started it'
is "$(log_count 'level=(warn|error)' line)" 0 'without a warning'
unlike "$(log_lines event=started line)" 'uncontained=' 'nor a word about cgroups, which nobody has asked for'
like "$(log_lines event=redis_up line)" ' appendonly=no' 'it says that Redis has no append-only file'
rqd_stop line

# -- with one ----------------------------------------------------------------------
handler who <<'H'
id -u >"$T/out/$RQD_QUEUE"
H
handler slow <<'H'
echo $$ >"$T/out/slow"
exec sleep 1000
H
user=$(id -un "$ME")
rqd_start <<C
queue "without" { command = {"$T/who"} }
queue "number"  { command = {"$T/who"} user = "$ME" }
queue "name"    { command = {"$T/who"} user = "$user" }
queue "slow"    { command = {"$T/slow"} }
C
for q in without number name; do
	r lpush $q x >/dev/null
	log_wait 10 "event=acked queue=$q"
	is "$(cat "$T/out/$q")" "$ME" "user of itself: $q"
done
r lpush slow x >/dev/null
wait_for 10 '[ -s "$T/out/slow" ]'
rqd_kill9
wait_ok 10 '! is_alive "$(cat "$T/out/slow")"' 'its handlers end with it'

# -- what it may not do ------------------------------------------------------------
refused() {	# SETTING REGEX DESCRIPTION
	printf 'queue "q" {\n\tcommand = {"/bin/true"}\n\t%s\n}\n' "$1" >"$T/other.conf"
	rqd -t -c "$T/other.conf"
	is "$status" 78 "$3: refused"
	like "$(cat "$T/2")" "other.conf:3: .*$2" "$3: where, and why"
	rqd -c "$T/other.conf"
	is "$status" 78 "$3: rqd does not start"
}
refused 'user = "daemon"' 'only root can run handlers as ' 'another user'
refused 'user = "root"' 'only root can run handlers as ' 'root'
refused 'group = "daemon"' 'only root can run handlers as ' 'another group'

# Files that it may not read, and others that are of no use.
: >"$T/empty"
echo x >"$T/shut" && chmod 0 "$T/shut"
for option in tls_ca tls_cert tls_key password_file sentinel_password_file; do
	for bad in none 'none: No such file or directory' empty 'empty is empty' shut 'shut: Permission denied' \
	    out 'out is a directory'; do
		case $bad in *' '*) ;; *) file=$bad; continue ;; esac
		printf 'redis { server = "unix:%s"\n%s = "%s" }\n' "$SOCK" $option "$T/$file" >"$T/other.conf"
		rqd -t -c "$T/other.conf"
		like "$(cat "$T/2")" "warning: .*/other.conf:2: $option $T/$bad\$" "$option: $bad"
	done
done

# A nice value lower than its own.
QUEUES="$QUEUES nicer"
nice=$(nice)
printf 'queue "nicer" {\n\tcommand = {"/bin/true"}\n\tnice = %s\n}\n' $((nice - 1)) >"$T/other.conf"
rqd -t -c "$T/other.conf"
is "$status" 0 'a lower nice value: rqd -t accepts it'
like "$(cat "$T/2")" "warning: .*/other.conf:3: nice = $((nice - 1)): only root can .* which is $nice" 'and warns'
rqd_start nicer <"$T/other.conf"
r lpush nicer x >/dev/null
ok 'log_wait 10 "event=suspended queue=nicer" 1 nicer' 'its queue is suspended'
like "$(log_lines event=suspended nicer)" "error=\"nice = $((nice - 1)): Permission denied: only root can" 'and the log says why'
rqd_stop nicer

cat >"$T/trace.py" <<'P'
import ctypes, sys
SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
if libc.ptrace(SEIZE, int(sys.argv[1]), 0, 0) == 0:
    print(sys.argv[1], "is traced")
elif ctypes.get_errno() != 1:
    print(sys.argv[1], "errno", ctypes.get_errno())
P
PYTHON=$(command -v python3)
# A handler of the same user cannot look into rqd, whose memory has the password of Redis.
{ echo "PYTHON='$PYTHON'"; cat <<'H'; } | handler look
exec 2>&1
main=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$PPID/status")
for p in $PPID $main; do
	for f in mem environ fd/0 maps; do
		if (: <"/proc/$p/$f") 2>/dev/null; then echo "$p: $f"; fi
	done
	if ls "/proc/$p/fd" >/dev/null 2>&1; then echo "$p: fd"; fi
	[ -z "$PYTHON" ] || "$PYTHON" "$T/trace.py" "$p"
done >"$T/out/looked"
mv "$T/out/looked" "$T/out/look"
H
QUEUES="$QUEUES look"
if [ "$SLOW" -eq 1 ]; then
	rqd_run looker -o "redis.server=unix:$SOCK" -q look -- "$T/look"
	r lpush look x >/dev/null
	wait_ok 10 '[ -e "$T/out/look" ]' 'a handler looks at its parents'
	is "$(cat "$T/out/look")" '' 'it sees neither the memory nor the files of rqd and its spawner, and traces none'
	rqd_stop looker
else
	skip 'looking at rqd: not with a sanitizer or valgrind'
fi

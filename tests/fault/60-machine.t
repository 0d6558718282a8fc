#!/bin/sh
# A machine in trouble: no more processes, no more descriptors, exec refused, no room
# for the log.  A message that cannot be tried for such a reason keeps its attempts.
# The queue is suspended, the log has the reason once, and the queue resumes by itself.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/lib.sh
. "$SRCDIR/tests/fault/lib.sh"

command -v prlimit >/dev/null || skip_all 'no prlimit'
# As the user of the main process: root without CAP_SYS_RESOURCE may not, in a container.
limit() {
	if [ "$(id -u)" -ne 0 ]; then
		prlimit "$@"
		return
	fi
	setpriv --reuid "$(id -u "$MAIN_USER")" --regid "$(id -g "$MAIN_USER")" --clear-groups prlimit "$@"
}
redis_start
chmod 755 "$T"
mkdir "$T/out"
touch "$T/out/ran"
chmod 666 "$T/out/ran"
handler work <<'H'
echo "$RQD_ID $RQD_ATTEMPT" >>"$T/out/ran"
H

# One trouble: it begins, a message comes, it ends, the message is handled.
trouble() {	# NAME BEGIN END ERROR
	told=$(log_count event=suspended)
	eval "$2"
	r lpush q "{\"id\":\"$1\"}" >/dev/null
	wait_ok 30 "[ \$(log_count event=suspended) -gt $told ]" "$1: the queue is suspended"
	like "$(log_lines event=suspended | tail -n 1)" "$4" "$1: because: $4"
	is "$(grep -c "^$1 " "$T/out/ran" 2>/dev/null)" 0 "$1: the message has not run"
	eval "$3"
	wait_ok 20 "grep -qs '^$1 1$' '$T/out/ran'" "$1: then it runs, as the first attempt"
	wait_ok 30 "log_count 'event=acked queue=q id=$1 ' >/dev/null" "$1: and is acknowledged"
	is "$(log_count event=suspended)" "$((told + 1))" "$1: that was told once"
}
fds() { find "/proc/$PID/fd" -mindepth 1 | wc -l; }

shim_make
RQD_WRAPPER=$SHIM
rqd_start <<C
queue "q" { command = {"$T/work"} }
C
RQD_WRAPPER=''
log_wait 30 event=redis_up
trouble fork-eagain 'shim_fork 11' 'shim_fork 0' 'Resource temporarily unavailable'
trouble fork-enomem 'shim_fork 12' 'shim_fork 0' 'Cannot allocate memory'
trouble exec-eagain 'shim_exec 11' 'shim_exec 0' 'Resource temporarily unavailable'
trouble exec-enomem 'shim_exec 12' 'shim_exec 0' 'Cannot allocate memory'
for room in 0 1 3; do
	trouble "emfile-$room" "limit --pid $PID --nofile=\$((\$(fds) + $room)):" \
	    "limit --pid $PID --nofile=1024:" 'Too many open files'
done
# It cannot connect then either; afterwards it does.
limit --pid "$PID" --nofile="$(fds):"
r client kill type normal >/dev/null
sleep 1
r lpush q '{"id":"emfile-connect"}' >/dev/null
limit --pid "$PID" --nofile=1024:
wait_ok 20 'log_count "event=acked queue=q id=emfile-connect " >/dev/null' 'no descriptor for Redis: it connects later'
rqd_stop

# -- the real limit on processes: root is exempt, so as somebody else --------------------------
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	AS=''
	chmod 777 "$SOCK"
	other='setpriv --reuid 54321 --regid 54321 --clear-groups'
	RQD_WRAPPER=$other
	config_write other <<C
queue "q" { command = {"$T/work"} }
C
	ups=$(log_count event=redis_up)
	rqd_spawn rqd -c "$T/other.conf"
	RQD_WRAPPER=''
	log_wait 30 event=redis_up $((ups + 1))
	S=$(pgrep -o -P "$PID" -x rqd-spawner)
	trouble nproc "$other prlimit --pid $S --nproc=1:" "$other prlimit --pid $S --nproc=1000:" \
	    'Resource temporarily unavailable'
	rqd_stop
	AS='user = "root"'
fi

# -- a disk that is full ---------------------------------------------------------------------
rqd_start <<C
log { target = "/dev/full" level = "debug" }
queue "q" { command = {"$T/work"} }
C
r lpush q '{"id":"full"}' >/dev/null
wait_ok 30 'grep -qs "^full 1$" "$T/out/ran"' '/dev/full for a log: messages are handled'
wait_ok 30 '[ "$(r exists qBACKUP)" -eq 0 ]' 'and acknowledged'
rqd_stop

if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
	mkdir "$T/disk"
	cat >"$T/on-disk" <<S
#!/bin/sh
mount -t tmpfs -o size=64k none "$T/disk" && exec "\$@"
S
	chmod 755 "$T/on-disk"
	RQD_WRAPPER="unshare --mount $T/on-disk"
	rqd_start <<C
log { target = "$T/disk/log" level = "debug" }
queue "q" { command = {"$T/work"} }
C
	RQD_WRAPPER=''
	disk=/proc/$PID/root$T/disk
	for i in 1 2 3; do r lpush q "{\"id\":\"before$i\"}" >/dev/null; done
	wait_for 30 'grep -q "event=acked queue=q id=before3" "$disk/log"'
	dd if=/dev/zero of="$disk/fill" bs=1024 2>/dev/null	# until there is no room
	for i in $(seq 40); do echo "lpush q '{\"id\":\"during$i\"}'"; done | r >/dev/null
	wait_ok 20 '[ "$(grep -c "^during" "$T/out/ran")" -eq 40 ]' 'a disk that is full: messages are handled'
	wait_ok 30 '[ "$(r exists q qBACKUP)" -eq 0 ]' 'and acknowledged'
	rm "$disk/fill"
	r lpush q '{"id":"after"}' >/dev/null
	wait_ok 30 'grep -q "event=acked queue=q id=after" "$disk/log"' 'the log goes on when there is room'
	wait_for 30 'grep -q reason=log_dropped "$disk/log"'
	like "$(cat "$disk/log")" 'reason=log_dropped dropped=[1-9]' 'and says how much it lost'
	is "$(grep -avcE '^ts=[^ ]* level=[a-z]* event=[a-z_]*( |$)' "$disk/log")" 0 'no record is cut'
fi

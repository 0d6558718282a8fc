#!/bin/sh
# CPU time and memory of handlers: in the log, dead letters, metrics, and what rqctl prints.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
command -v curl >/dev/null || skip_all 'no curl'

redis_start
H=$OWN/http
# A child that it waits for needs the memory, it itself the time.
handler works <<'H'
dd if=/dev/zero of=/dev/null bs=48M count=1 2>/dev/null
i=0
while [ $i -lt 100000 ]; do i=$((i + 1)); done
case $RQD_ID in
dead) exit 65 ;;
retry) exit 1 ;;
slow) while :; do :; done ;;
esac
H
handler answers <<'H'
while read -r n _ _ _ && IFS= read -r m; do
	i=0
	while [ $i -lt 100000 ]; do i=$((i + 1)); done
	case $m in *dead*) echo "$n dead" ;; *) echo "$n ok" ;; esac
done
H
rqd_start <<C
http { listen = "unix:$H" }
queue "works" { command = {"$T/works"} backoff = 10m suspend_after = 0 }
queue "limited" { command = {"$T/works"} backoff = 10m time_limit = 5s suspend_after = 0 }
queue "batch" { command = {"/bin/sh", "-c", 'cat >/dev/null; dd if=/dev/zero of=/dev/null bs=24M count=1; echo "2 dead" >&3'} batch = 3 batch_wait = 1s }
queue "alone" { command = {"/bin/sh", "-c", 'exit 65'} batch = 3 }
queue "persistent" { command = {"$T/answers"} mode = "persistent" framing = "line" }
queue "missing" { command = {"/no/such/command"} }
queue "idle" { command = {"/bin/true"} }
queue "copy" { command = {"/bin/true"} }
C

# Whether a record has both, and at least so much: "cpu=0.123456 maxrss=49M".
used() {	# RECORD SECONDS MEBIBYTES
	echo "$1" | awk -v cpu="$2" -v mib="$3" '
	match($0, / duration=[0-9.]+ cpu=[0-9.]+ maxrss=[0-9]+[KM]/) {
		split(substr($0, RSTART, RLENGTH), f, /[ =]/)
		memory = f[7] ~ /K/ ? f[7] / 1024 : f[7] + 0
		exit !(f[5] >= cpu && f[5] < 60 && memory >= mib && memory < mib + 100)
	}
	{ exit 1 }'
}
record() { log_lines "event=$1 queue=$2 " | tail -n 1; }

for id in acked dead retry; do r lpush works "{\"id\":\"$id\"}" >/dev/null; done
r lpush limited '{"id":"slow"}' >/dev/null
for e in acked dead retry; do log_wait 30 "event=$e queue=works "; done
log_wait 30 'event=retry queue=limited '
ok 'used "$(record acked works)" 0.005 48' "acked: $(record acked works | sed 's/.*duration/duration/')"
ok 'used "$(record dead works)" 0.005 48' 'a dead letter'
ok 'used "$(record retry works)" 0.005 48' 'a retry'
# On a busy machine it has little of its five seconds.
ok 'used "$(record retry limited)" 0.1 48' 'a run that was ended at its limit'

# -- others ------------------------------------------------------------------------
for id in a dead c; do r lpush persistent "{\"id\":\"$id\"}" >/dev/null; done
log_wait 10 'event=acked queue=persistent' 2
log_wait 10 'event=dead queue=persistent'
is "$(log_count 'queue=persistent .*(cpu|maxrss)=')" 0 'a persistent handler: not known of a message'
r lpush missing x >/dev/null
log_wait 10 'event=returned queue=missing'
is "$(log_count 'queue=missing .*(cpu|maxrss)=')" 0 'nor what was not started'
r lpush batch 1 2 3 >/dev/null
log_wait 10 'event=acked queue=batch .*batch=3'
log_wait 10 'event=dead queue=batch'
ok 'used "$(log_lines "event=acked queue=batch .*batch=3")" 0 24' 'a batch: of the run'
is "$(log_count 'event=(acked|dead) queue=batch id=.*(cpu|maxrss)=')" 0 'and of none of its messages'
r lpush alone x >/dev/null
log_wait 10 'event=dead queue=alone'
ok 'used "$(record dead alone)" 0 0' 'a message that ran alone'

# -- the dead letter ---------------------------------------------------------------
field() { r --raw xrevrange "$1DEAD" + - count 1 | awk -v f="$2" 'found { print; exit } $0 == f { found = 1 }'; }	# QUEUE FIELD
like "$(field works cpu) $(field works maxrss)" '^[0-9]+\.[0-9]{6} [0-9]{8,9}$' 'QDEAD: seconds and bytes'
is "$(field persistent cpu)$(field batch maxrss)" '' 'QDEAD: only where known'
like "$(ctl dead show works dead)" '^usage     cpu [0-9]+\.[0-9]{3}s, maxrss [0-9]+M$' 'rqctl dead show'
like "$(ctl dead show --json works dead)" '"cpu":[0-9]+\.[0-9]+,"maxrss":[0-9]{8,9},' 'as JSON'
like "$(ctl show works dead)" ' attempts 1, cpu [0-9]+\.[0-9]{3}s, maxrss [0-9]+M$' 'rqctl show'
like "$(ctl show --json works dead)" '"maxrss": [0-9]{8,9}' 'as JSON'
unlike "$(ctl dead show persistent dead; ctl show persistent dead; ctl show --json persistent dead)" 'cpu|maxrss|usage' 'nothing where nothing is known'
r xadd copyDEAD 1-1 id old message m cpu 7 maxrss x >/dev/null
like "$(ctl dead show copy old)" '^usage     cpu 7.000s, maxrss 0$' 'values of another kind do no harm'

# -- sums --------------------------------------------------------------------------
metric() { curl -s -m 20 --unix-socket "$H" http://rqd/metrics | sed -n "s/^rqd_handler_$1{queue=\"$2\"} //p"; }
sum=$(log_lines '(acked|dead|retry) queue=works' | log_field cpu | awk '{ n += $1 } END { print n }')
ok "awk 'BEGIN { d = $(metric cpu_seconds_total works) - $sum; exit !(d > -0.01 && d < 0.01) }'" "rqd_handler_cpu_seconds_total ($sum)"
ok '[ "$(metric maxrss_bytes works)" -ge 50331648 ] && [ "$(metric maxrss_bytes works)" -lt 155189248 ]' \
    "rqd_handler_maxrss_bytes ($(metric maxrss_bytes works))"
like "$(metric cpu_seconds_total batch) $(metric maxrss_bytes batch)" '^0\.[0-9]+ [0-9]{8}$' 'of a batch, once'
is "$(metric cpu_seconds_total persistent) $(metric maxrss_bytes persistent) $(metric cpu_seconds_total idle)" '0 0 0' 'nothing without a run of mode exec'
status() { ctl status --json "$1" | sed -n 's/^ *"\(cpu\|maxrss\)": \([0-9a-z.]*\).*/\2/p' | tr '\n' ' '; }	# QUEUE
wait_ok 15 'status works | grep -qE "^[0-9.]+ [0-9]{8,9} $"' 'status --json, from heartbeats'
is "$(status works | cut -d ' ' -f 2)" "$(metric maxrss_bytes works)" 'the same memory'
is "$(status idle)" '0.0 null ' 'none known'

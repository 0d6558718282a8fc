#!/bin/sh
# The journal: records of one message are found by their fields and priorities.  No record
# is lost uncounted when much is logged at once, and rqd works on while journald is stopped.

# shellcheck source=tests/system/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"

machine_boot
machine_redis
mkdir -p "$R/opt"
cat >"$R/opt/work" <<'H'
#!/bin/sh
case $RQD_ID in
42) echo 'first line'; echo 'to stderr: "quoted"' >&2; [ "$RQD_ATTEMPT" -gt 1 ] || exit 1 ;;
flood*) i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i + 1)); done ;;
esac
H
chmod 755 "$R/opt/work"
cat >"$R$etc/rqd.conf" <<C
defaults { command = {"/opt/work"} user = "daemon" backoff = 100ms output_limit = 16M }
queue "orders" { }
queue "mail" { }
C
m systemctl daemon-reload
m systemctl start rqd
is "$(prop ActiveState)" active 'rqd runs'

# Prints the records that match these fields, one on each line.
find_records() { m journalctl -q --no-pager -o cat "$@"; }
count_records() { m journalctl -q --no-pager -o cat "$@" | wc -l; }

# -- one message ---------------------------------------------------------------------
mr lpush orders '{"id":42}' '{"id":43}' >/dev/null
mr lpush mail '{"id":42}' >/dev/null
wait_ok 20 '[ "$(count_records RQD_QUEUE=orders RQD_ID=42 RQD_EVENT=acked)" -eq 1 ]' 'records of a message are found by queue and id'
wait_for 60 '[ "$(count_records RQD_QUEUE=mail RQD_ID=42 RQD_EVENT=acked)" -eq 1 ]'
life=$(find_records RQD_QUEUE=orders RQD_ID=42)
like "$life" '^level=info event=output queue=orders id=42 attempt=1 pid=[0-9]+ fd=1 line="first line"$' 'they have its stdout, as text without ts'
like "$life" 'fd=2 line="to stderr: \\"quoted\\""' 'they have its stderr'
like "$life" 'event=retry queue=orders id=42 attempt=1 .*status=1' 'they have its failed attempt'
like "$life" 'event=acked queue=orders id=42 attempt=2 .*status=0' 'they have its ack'
is "$(echo "$life" | wc -l)" 6 'there are no other records of the message'
is "$(echo "$life" | grep -c 'queue=mail')" 0 'records of another queue with the same id are not found'
is "$(count_records RQD_EVENT=retry RQD_STATUS=1 RQD_REASON=exit)" 2 'records are found by the fields of a result'
is "$(count_records -u rqd -p warning RQD_QUEUE=orders)" 1 'records are found by priority'
is "$(count_records -t rqd RQD_EVENT=started)" 1 'records are found by the identifier rqd'
is "$(count_records _SYSTEMD_UNIT=rqd.service RQD_EVENT=started)" 1 'records are found by unit'
is "$(m journalctl -q --no-pager -o json RQD_EVENT=started | grep -c '"PRIORITY":"6"')" 1 'the record "started" has the priority 6'
unlike "$(find_records -u rqd)" 'ts=|^<[0-9]>' 'no record has a ts or a <priority>'

# -- much at once ----------------------------------------------------------------------
is "$(prop LogRateLimitBurst)" 1000000 'the unit has a rate limit of a million records'
mr lpush mail '{"id":"flood"}' >/dev/null
wait_ok 60 '[ "$(mr llen mail)$(mr zcard mailBACKUP)" = 00 ]' 'the message of a handler that prints 20,000 lines is settled'
dropped() { m journalctl -q --no-pager -o json RQD_REASON=log_dropped | sed -n 's/.*"RQD_DROPPED":"\([0-9]*\)".*/\1/p' | awk '{ n += $1 } END { print n + 0 }'; }
lines() { count_records RQD_ID="$1" RQD_EVENT=output; }
accounted() { [ $(($(lines "$1") + $(dropped))) -ge 20000 ]; }
wait_ok 60 'accounted flood' 'every line is in the journal, or counted as dropped by rqd'
ok '[ "$(lines flood)" -gt 5000 ]' 'the journal has over 5,000 of the 20,000 lines'
note "$(lines flood) lines, $(dropped) dropped"
is "$(m journalctl -q --no-pager -u systemd-journald | grep -c 'Suppressed .* messages from rqd')" 0 'journald suppressed no record of rqd'

# -- the journal is stuck ----------------------------------------------------------------
journald=$(m systemctl show -P MainPID systemd-journald.service)
m kill -STOP "$journald"
mr lpush mail '{"id":"flood2"}' >/dev/null
i=0
while [ $i -lt 300 ]; do echo "lpush orders {\"id\":\"s$i\"}"; i=$((i + 1)); done | $IN redis-cli >/dev/null
wait_ok 60 '[ "$(mr llen orders)$(mr zcard ordersBACKUP)" = 00 ]' 'messages are settled while journald is stopped'
is "$(prop ActiveState)" active 'the daemon runs while journald is stopped'
m kill -CONT "$journald"
wait_ok 60 'accounted flood2' 'every line of that time is in the journal, or counted as dropped'
note "$(lines flood2) lines, $(dropped) dropped"
mr lpush orders '{"id":"after"}' >/dev/null
wait_ok 20 '[ "$(count_records RQD_ID=after RQD_EVENT=acked)" -eq 1 ]' 'records are logged again when journald goes on'

# -- journald is restarted ------------------------------------------------------------------
m systemctl restart systemd-journald
mr lpush orders '{"id":"anew"}' >/dev/null
wait_ok 20 '[ "$(count_records RQD_ID=anew RQD_EVENT=acked)" -eq 1 ]' 'records are logged after journald was restarted'
m systemctl stop rqd
is "$(prop Result)" success 'the service stops with the result success'
wait_for 30 '[ "$(count_records RQD_EVENT=stopped)" -eq 1 ]'
is "$(count_records RQD_EVENT=stopped)" 1 'the last record, "stopped", is in the journal'

#!/bin/sh
# Redis' clock is set far ahead, and back: schedules follow it at once, and no daemon
# asks again and again.

# shellcheck source=tests/lib.sh disable=SC2016,SC2034
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/fault/lib.sh
. "$SRCDIR/tests/fault/lib.sh"
shim_make
redis_under_shim

config_write fleet <<C
redis { server = "unix:$SOCK" }
queue "q" { command = {"/bin/true"}  concurrency = 4 }
schedule "second" { queue = "q"  every = 1s }
C
for d in d1 d2 d3; do rqd_run $d -c "$T/fleet.conf"; done
ticks() { cat "$T"/d?.log | grep event=scheduled | log_field tick | while read -r t; do date -d "$t" +%s; done; }
calls() { r info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'; }
now() { r --raw time | head -n 1; }

ok "wait_for 20 '[ \"\$(ticks | wc -l)\" -ge 2 ]'" 'it runs'
for by in 3600 -3600 100 -100000; do
	shim_clock $by
	start=$(now)
	r config resetstat >/dev/null
	ok "wait_for 40 '[ \"\$(ticks | awk -v from=$start \"\\\$1 >= from && \\\$1 < from + 60\" | sort -u | wc -l)\" -ge 3 ]'" "Redis' clock $by seconds off: it goes on"
	passed=$(($(now) - start + 2))
	ok "[ $(calls) -lt $((passed * 30)) ]" "no more calls than usual ($(calls) in $passed s)"
done

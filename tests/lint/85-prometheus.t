#!/bin/sh
# The examples for Prometheus and Grafana: they name metrics that exist and verbs that
# exist; and what promtool says of the rules, where there is one.

# shellcheck source=tests/lint/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lint/lib.sh"

RULES=etc/examples/prometheus/rqd.rules.yml
BOARD=etc/examples/grafana/rqd.json
D=$(mktemp -d /tmp/rqd-prometheus.XXXXXX) || exit 99
trap 'rm -rf "$D"' EXIT
trap 'exit 99' HUP INT TERM
PROMTOOL=$(PATH=$PATH:$BUILDDIR/tools:$SRCDIR/build/tools command -v promtool)

# Every series that /metrics has.
series() {
	sed -n 's/^	{ "\([a-z_]*\)", "[a-z]*",.*/\1/p' src/status/metrics.c
	sed -n 's/.*\[STAT_[A-Z_]*\] = { "\([a-z_]*\)".*/rqd_queue_\1_total/p' src/base/stats.c
	printf 'rqd_handler_duration_seconds_%s\n' bucket sum count
}

metrics_exist() {
	series | sort -u >"$D/series"
	grep -ohE '\<(rqd|process)_[a-z_]+' "$RULES" "$BOARD" tests/prometheus/rules_test.yml | sort -u |
	    comm -23 - "$D/series" | sed 's/$/ is not in \/metrics/'
}

# Runbooks name what to type: "rqctl dead retry Q --all".
verbs_exist() {
	[ -x "$BUILDDIR/rqctl" ] || return 0
	grep -ohE 'rqctl [a-z]+( (list|retry|now))?' "$RULES" "$BOARD" | sort -u | while read -r _ verb; do
		# shellcheck disable=SC2086
		"$BUILDDIR/rqctl" help $verb >/dev/null 2>&1 || echo "rqctl $verb does not exist"
	done
}

every_alert_has_a_runbook() {
	awk '/- alert:/ { if (name && !runbook) print name " has no runbook that names a command"; name = $3; runbook = 0 }
	/runbook:/ && /rqctl|rqd -t|journalctl/ { runbook = 1 }
	END { if (name && !runbook) print name " has no runbook" }' "$RULES"
}

rules_are_right() {
	[ -n "$PROMTOOL" ] || return 0
	cp "$RULES" tests/prometheus/rules_test.yml "$D"
	"$PROMTOOL" check rules "$D/rqd.rules.yml" >"$D/out" 2>&1 || cat "$D/out"
	(cd "$D" && "$PROMTOOL" test rules rules_test.yml >"$D/out" 2>&1) || cat "$D/out"
}

# Turns the board's queries into rules: promtool reads expressions in no other form.
board_is_right() {
	[ -n "$PROMTOOL" ] || return 0
	{
		echo 'groups: [ { name: board, rules: ['
		sed -n 's/^ *"expr": \(".*"\),*$/\1/p' "$BOARD" |
		    sed 's/\$__rate_interval/5m/g; s/\$queue/.*/g' |
		    awk '{ print "{ record: r" NR ", expr: " $0 " }," }'
		echo '] } ]'
	} >"$D/board.yml"
	[ "$(wc -l <"$D/board.yml")" -eq $(($(grep -c '"expr"' "$BOARD") + 2)) ] || echo 'not every expression stands in a line of its own'
	"$PROMTOOL" check rules "$D/board.yml" >"$D/out" 2>&1 || cat "$D/out"
}

[ -n "$PROMTOOL" ] || echo '# no promtool: what it would say is not known'
silent 'rules and dashboard name metrics that exist' metrics_exist
silent 'and verbs of rqctl that exist' verbs_exist
silent 'every alert says what to do' every_alert_has_a_runbook
silent 'promtool accepts the rules, and they fire when they should' rules_are_right
silent 'promtool accepts what the dashboard asks' board_is_right
done_testing

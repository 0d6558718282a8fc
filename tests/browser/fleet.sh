# A fleet with trouble, for the page: sourced after tests/lib.sh.
#
#	redis_start
#	fleet_start
#	fleet_push 5		# pushes some messages; call it each second
#
# Two daemons, web1 (its page is at http://$WHERE/) and web2, and queues:
#
#	orders		ok			reports		paused
#	mail		suspended: fails	imports		suspended: no such command
#	thumbnails	too slow		invoices	dead letters
#	newsletter	a stream		shipping	groups
#
# shellcheck shell=sh disable=SC2034,SC2154

fleet_handlers() {
	handler orders <<'H'
sleep 0.0$(($$ % 9 + 1))
H
	handler mail <<'H'
echo 'smtp.example.com:25: connection refused' >&2
exit 75
H
	handler invoices <<'H'
case $(cat) in
*'"customer":7}') echo 'lookup failed: no customer 4711 in table "customers"' >&2; echo 'dead no such customer' >&3 ;;
*'"customer":3}') echo 'amount: "12,50" is no number' >&2; exit 65 ;;
*'"customer":5}') echo 'ledger.example.com:5432: connection timed out' >&2; exit 1 ;;
esac
H
	handler shipping <<'H'
sleep 1
H
	handler thumbnails <<'H'
sleep 4
H
}

fleet_config() {	# NAME
	cat <<C
name = "$1"
max_handlers = 16
http { listen = "unix:$OWN/$1.sock" }
queue "orders" { command = {"$T/orders"} concurrency = 4 }
queue "mail" { command = {"$T/mail"} concurrency = 2 suspend_after = 3 }
queue "invoices" { command = {"$T/invoices"} concurrency = 2 max_attempts = 2 message_max = "4K" }
queue "thumbnails" { command = {"$T/thumbnails"} concurrency = 1 }
queue "reports" { command = {"$T/orders"} }
queue "imports" { command = {"$T/import-csv", "--strict"} }
queue "newsletter" { kind = "stream" command = {"$T/orders"} concurrency = 2 }
queue "shipping" { command = {"$T/shipping"} concurrency = 4 group_by = "customer" }
schedule "cleanup" { queue = "orders" every = "1m" message = "cleanup" }
schedule "nightly" { queue = "reports" cron = "0 3 * * *" timezone = "UTC" }
C
}

fleet_start() {
	fleet_handlers
	_now=$(date +%s)
	r hset reportsSCHEDULE nightly $((_now - 3 * 86400)) >/dev/null
	fleet_config web1 | sed 's|^http.*|http { listen = "127.0.0.1:0" details = true }|' >"$T/web1.in"
	rqd_start web1 <"$T/web1.in"
	log_wait 10 event=ready 1 web1
	WHERE=$(log_lines event=listening web1 | log_field address)
	fleet_config web2 >"$T/web2.in"
	rqd_start web2 <"$T/web2.in"
	ctl pause reports --reason 'month end, ask ann' >/dev/null
	r lpush imports products.csv prices.csv >/dev/null
	r lpush mail a b c d e f g h i j k l >/dev/null
	r lpush invoices '{"id":4711,"customer":7}' >/dev/null
	r lpush reports month year >/dev/null
	r lpush thumbnails 1 2 3 4 5 6 7 8 9 >/dev/null
	fleet_push 8
	log_wait 20 'event=suspended queue=mail' 1 web1
	log_wait 20 'event=suspended queue=imports' 1 web1
}

PUSHED=0
fleet_push() {	# N messages for the busiest queue, and one for some others
	for _i in $(seq "$1"); do
		PUSHED=$((PUSHED + 1))
		r lpush orders "{\"id\":$PUSHED}" >/dev/null
	done
	r lpush invoices "{\"id\":$PUSHED,\"customer\":$((PUSHED % 10))}" >/dev/null
	r lpush thumbnails "$PUSHED.jpg" >/dev/null
	r xadd newsletter '*' message "$PUSHED" >/dev/null
}

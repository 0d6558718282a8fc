#!/bin/sh
# The page at /, in a browser: it shows the queues, follows changes, and says when the
# daemon or Redis does not answer.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/browser/lib.sh
. "$SRCDIR/tests/browser/lib.sh"

# Prints JavaScript for the text of a cell: the row of a queue or daemon, and a column.
cell() {	# TABLE ROW COLUMN
	echo "[...document.querySelectorAll('#$1 tbody tr')].filter(r => r.cells[0].firstChild.textContent === '$2').map(r => [...r.cells].find(c => c.dataset.label === '$3').textContent)[0]"
}
cell_wait() {	# SECONDS TABLE ROW COLUMN TEXT DESCRIPTION
	js_wait "$1" "$(cell "$2" "$3" "$4") === '$5'" "$6"
}
link() { js "document.querySelector('#link span').textContent"; }
banner() { js "document.querySelector('#banner').hidden ? '' : document.querySelector('#banner').textContent"; }
rows() { js "document.querySelectorAll('#$1 tbody tr').length"; }	# TABLE

redis_start
handler good <<'H'
cat >/dev/null
H
handler slow <<'H'
echo 'progress half <b>way</b>' >&3
until [ -e "$T/release" ]; do sleep 0.2; done
H
config() {	# NAME
	cat <<C
name = "$1"
http { listen = "unix:$T/$1.sock" }
queue "orders" { command = {"$T/good"} }
queue "slow" { command = {"$T/slow"} concurrency = 2 }
queue "broken" { command = {"$T/missing"} }
queue "<b>odd</b>" { command = {"$T/good"} }
C
}
config web1 | sed "s|^http.*|http { listen = \"127.0.0.1:0\" details = true }|" >"$T/web1.in"
rqd_start web1 <"$T/web1.in"
log_wait 10 event=ready 1 web1
where=$(log_lines event=listening web1 | log_field address)
# Fix the port, so that the page finds a restarted daemon again.
sed -i "s|127.0.0.1:0|$where|" "$T/web1.conf"
r lpush slow s1 s2 s3 s4 >/dev/null
r lpush broken b1 >/dev/null
log_wait 10 event=suspended 1 web1

browser_start
size 1280 900
go "http://$where/"
js_wait 20 'document.querySelectorAll("#queues tbody tr").length === 4' 'all queues are shown'
is "$(js 'document.querySelector("#name").textContent')" web1 'the page names its daemon'
is "$(link)" live 'the page says that it is live'
is "$(banner)" '' 'there is no banner while all is well'
cell_wait 10 queues slow Waiting 2 'the number of messages that wait is shown'
cell_wait 20 queues slow Running 2/2 'the number of messages that run is shown'
# The page and rqctl status also say for how long, which changes: compare what is before it.
wanted=$(ctl status --json broken | sed -n 's/.*"state": "\(suspended: [a-z_]*\) for .*/\1/p')
like "$(js "$(cell queues broken State)")" "^${wanted:-nothing} for [0-9]" 'a blocked queue has the reason that rqctl status gives'
is "$(js 'document.querySelectorAll("#queues tbody tr.bad").length')" 1 'one queue is marked as bad'
like "$(js document.title)" '^\(1\) rqd on web1$' 'the title counts bad queues'
is "$(js "$(cell queues '<b>odd</b>' State)")" ok 'the name of a queue is shown as text'
is "$(js 'document.querySelectorAll("#queues b").length')" 0 'the name of a queue makes no HTML element'
is "$(rows daemons)" 1 'one daemon is shown'
js_wait 20 'document.querySelectorAll("#progress tbody tr").length === 2' 'messages whose handlers report progress are shown'
is "$(js 'document.querySelector("#progress tbody tr").cells[1].textContent')" 'half <b>way</b>' 'progress is shown as text'

# -- changes
r lpush orders 1 2 3 >/dev/null
log_wait 10 'event=acked queue=orders' 3 web1
config web2 | sed -e '/^http/d' -e '/^queue "slow"/d' >"$T/web2.in"
rqd_start web2 <"$T/web2.in"
js_wait 30 'document.querySelectorAll("#daemons tbody tr").length === 2' 'a daemon that starts is shown'
rqd_stop web2
js_wait 30 'document.querySelectorAll("#daemons tbody tr").length === 1' 'a daemon that stops is no longer shown'
r lpush slow s5 >/dev/null
cell_wait 20 queues slow Waiting 3 'a pushed message is counted'
ctl pause orders --reason 'counting "stock" <now>' >/dev/null
js_wait 20 "/^paused by .*: counting .stock. <now>\$/.test($(cell queues orders State))" 'a pause is shown with its reason'
ctl resume orders >/dev/null
js_wait 60 'document.querySelector("#queues svg path:nth-child(2)").getAttribute("d").split("L").length > 3' 'a plot gets new samples'
is "$(js '[...document.querySelectorAll(".wide svg")].map(s => s.getAttribute("aria-label").slice(0, 5)).join()')" 'Backl,Rates' \
    'plots have a label for screen readers'

# -- sorting and finding
js 'document.querySelectorAll("#queues th button")[2].click()' >/dev/null
is "$(js 'document.querySelector("#queues tbody tr").cells[0].firstChild.textContent')" slow 'a click on a column sorts by it, the largest first'
is "$(js 'document.querySelectorAll("#queues th")[2].getAttribute("aria-sort")')" descending 'the sorted column is marked'
js '(e => { e.value = "BROK"; e.dispatchEvent(new Event("input")) })(document.querySelector("#find"))' >/dev/null
is "$(rows queues)" 1 'the search shows only the queue that matches'
js '(e => { e.value = ""; e.dispatchEvent(new Event("input")) })(document.querySelector("#find"))' >/dev/null
is "$(rows queues)" 4 'an empty search shows all queues'

# -- widths
for width in 320 390 768 1024 1100 1280 1920; do
	size $width 800
	is "$(js 'document.documentElement.scrollWidth <= innerWidth')" true "the page needs no horizontal scrolling at $width pixels"
done
size 390 844
screenshot "$T/phone.png"
ok '[ "$(wc -c <"$T/phone.png")" -gt 10000 ]' 'a screenshot can be taken'
dark() { js 'getComputedStyle(document.body).backgroundColor'; }
scheme dark
like "$(dark)" 'rgb\(1?[0-9], 2[0-9], 2[0-9]\)' 'the page is dark if the browser prefers that'
scheme light
like "$(dark)" 'rgb\(24[0-9], 24[0-9], 24[0-9]\)' 'the page is light if the browser prefers that'
is "$(complaints)" '' 'the browser reports no error so far'

# -- answers with wrong types
r set rqd:daemon:ghost '{"config":5,"queues":{}}' >/dev/null
r zadd rqd:daemons "$(date +%s)" ghost >/dev/null
js_wait 20 '[...document.querySelectorAll("#daemons tbody tr")].some(r => r.cells[0].textContent.includes("ghost"))' \
    'a daemon with a strange heartbeat is shown'
is "$(link)" live 'the page works with a strange heartbeat'
r del rqd:daemon:ghost >/dev/null
r zrem rqd:daemons ghost >/dev/null
cat >"$T/odd.js" <<'J'
(() => {
	const whole = { time: '2026-11-22T00:00:00Z', daemon: { name: 'a', version: version, state: 'running', instance: 'a.1',
	    redis: { up: true, server: 's', version: '7' } }, daemons: 1, fleet: [{ instance: 'a.1', name: 'a', version: 'v',
	    pid: 1, started: 1, config: 'c', queues: 1, running: 0, seen: 1, max_handlers: 1, states: { q: 'paused' } }],
	    queues: [{ name: 'q', key: 'q', kind: 'ack', state: 'ok', mood: 'ok', waiting: 1, totals: { acked: 1, failed: 1 } }],
	    progress: [{ queue: 'q', id: '7', attempt: 1, age: 2.5, daemon: 'a.1', progress: '4/10' }],
	    schedules: [{ name: 's', queue: 'q', key: 'q', every: 60, cron: null, timezone: null, last: 1, next: 2, missed: 3 }],
	    problems: [{ level: 'error', text: 'Redis is full' }] };
	const past = { times: [Date.now() / 1000 - 20, Date.now() / 1000 - 10], queues: [{ key: 'q', depth: [1, 2],
	    acked_rate: [1, 2], failed_rate: [0, 0] }] };
	const queue = { hint: 'h', commands: ['rqctl peek q'], servers: [{ instance: 'a.1', version: '1', config: 'c', running: 1,
	    concurrency: 2, state: 'running', reason: '', since: 1 }], letters: { total: 2, looked: 1, reasons: { status: 1 }, newest: { id: '7', died: 1, reason: 'exit', status: '1', host: 'h', attempts: '25', answer: 'a',
	    error: 'e' } } };
	const odd = [null, 5, -1e308, 'x', '', true, [], {}, [1, null, [2]], { a: { b: 1 } }];
	let failed = '';
	const walk = (o, attempt) => {
		for (const name of Object.keys(o)) {
			if (o === whole.daemon && name === 'version')
				continue;
			const was = o[name];
			for (const v of odd.concat(undefined)) {
				o[name] = v;
				try { attempt(); } catch (e) { failed += name + ' ' + JSON.stringify(v) + ': ' + e + '; '; }
			}
			o[name] = was;
			if (was !== null && typeof was === 'object')
				walk(was, attempt);
		}
	};
	walk(whole, () => show(whole));
	show(whole);
	walk(past, () => { takeHistory(past); drawn = 0; show(whole); });
	queueTable.toggle('q');
	walk(queue, () => { details.set('q', queue); drawOpen(true); });
	queueTable.toggle('q');
	sampled = 0;
	return failed || 'fine';
})()
J
is "$(js "$(cat "$T/odd.js")")" fine 'no member of a wrong type stops the page'
js_wait 20 'document.querySelectorAll("#queues tbody tr").length === 4' 'the next good answer is shown'

# -- a page that is not visible sends no requests
js '(Object.defineProperty(document, "hidden", { configurable: true, get: () => true }), document.dispatchEvent(new Event("visibilitychange")))' >/dev/null
js 'performance.clearResourceTimings()' >/dev/null
asked='performance.getEntriesByName(new URL("status", location).href).length'
before=$(js "$asked")
# Wait for two intervals: no condition tells that a request was not sent.
sleep 5
ok "[ \$(( $(js "$asked") - $before )) -le 1 ]" 'a hidden page sends no requests'
js '(delete document.hidden, document.dispatchEvent(new Event("visibilitychange")))' >/dev/null
js_wait 10 "$asked > 1" 'a page that is seen again sends requests'

# -- Redis goes, and comes back
redis_stop
js_wait 30 'document.querySelector("#link span").textContent === "Redis is down"' 'the page says that Redis is down'
like "$(banner)" 'Redis does not answer: .*redis.sock' 'the banner names the address of Redis'
is "$(rows queues)" 4 'the last figures stay while Redis is down'
is "$(js 'document.body.classList.contains("stale")')" true 'the last figures are marked as old'
redis_start
js_wait 30 'document.querySelector("#link span").textContent === "live"' 'the page is live when Redis is back'

# -- the daemon is killed, and comes back
rqd_kill9 web1
js_wait 30 'document.querySelector("#link span").textContent === "disconnected"' 'the page says that the daemon is gone'
like "$(banner)" 'The daemon does not answer since' 'the banner says since when'
touch "$T/release"
rqd_run web1 -c "$T/web1.conf"
js_wait 40 'document.querySelector("#link span").textContent === "live"' 'the page is live when the daemon was started again'
is "$(banner)" '' 'the banner is gone then'
js_wait 40 'document.querySelector("#progress-section").hidden' 'progress of the dead daemon goes when its heartbeat has expired'
rqd_signal USR2 web1
js_wait 20 'document.querySelector("#banner").textContent === "This daemon is quiet."' 'the banner says that the daemon is quiet'
browser_stop

#!/bin/sh
# The page of a fleet in trouble, in a browser: plots from the start, bad queues first, rows
# that open, contrast, and a phone.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/browser/lib.sh
. "$SRCDIR/tests/browser/lib.sh"
# shellcheck source=tests/browser/fleet.sh
. "$SRCDIR/tests/browser/fleet.sh"

# Print JavaScript for the row of a queue, and for an element in the open row below it.
row() { echo "[...document.querySelectorAll('#queues tbody tr:not(.detail)')].find(r => r.cells[0].firstChild.textContent === '$1')"; }	# QUEUE
below() { echo "($(row "$1").nextElementSibling.querySelector('$2') || {})"; }	# QUEUE SELECTOR
open_row() { js "$(row "$1").click()" >/dev/null; }	# QUEUE
text_wait() {	# SECONDS QUEUE SELECTOR REGEX DESCRIPTION
	_e="$(below "$2" "$3").textContent"
	js_until "$1" "new RegExp(String.raw\`$4\`, 's').test($_e)"
	like "$(js "$_e")" "$4" "$5"
}
key() {	# KEY: presses and releases it; the focused element gets it
	driver POST "$SESSION/actions" '{"actions":[{"type":"key","id":"k","actions":[
	    {"type":"keyDown","value":"'"$1"'"},{"type":"keyUp","value":"'"$1"'"}]}]}' >/dev/null
}

redis_start
fleet_start
# The history has samples before a browser opens the page.
wait_ok 60 '[ "$(curl -s "http://$WHERE/history" | grep -o "\"times\":\[[^]]*" | tr "," "\n" | wc -l)" -ge 3 ]' \
    'the daemon takes samples while nobody looks'

browser_start
size 1280 900
go "http://$WHERE/"
js_wait 20 'document.querySelectorAll("#queues tbody tr").length === 8' 'all queues are shown'
js_wait 5 'document.querySelector(".wide path:nth-child(2)").getAttribute("d").split("L").length > 2' 'plots are there at once'
like "$(js 'document.querySelector(".wide .top").textContent')" '^[125]0*$' 'plots have a scale'

# -- bad queues first
order() { js '[...document.querySelectorAll("#queues tbody tr:not(.detail)")].map(r => r.className.split(" ")[0]).join(" ")'; }
like "$(order)" '^bad bad( bad)* warn' 'bad queues come first, then those with a warning'
like "$(js '[...document.querySelectorAll("#queues th")].find(th => th.hasAttribute("aria-sort")).textContent')" State 'the table is marked as sorted by state'
first() { js "[...document.querySelectorAll('#queues tbody tr:not(.detail)')].map(r => r.cells[0].firstChild.textContent).indexOf('$1')"; }
ok '[ "$(first reports)" -lt "$(first orders)" ] && [ "$(first mail)" -lt "$(first reports)" ]' 'a suspended queue comes before a paused one, and that before one that is ok'
wait_for 30 '[ "$(r xlen invoicesDEAD)" = 1 ]'
state() { js "$(row "$1").cells[1].textContent"; }
js_wait 10 "$(row invoices).cells[1].textContent === '1 dead letter'" 'a queue with a dead letter shows that, and not ok'
is "$(js "$(row invoices).querySelector('td.warn').title")" 'rqctl dead list invoices' 'a number tells which command lists what it counts'
is "$(js 'queueItem({ key: "k", name: "k", waiting: 1, due: 2, held: 3 }).depth')" 6 'the backlog counts held messages'
is "$(js 'getComputedStyle([...document.querySelectorAll("#queues th")].find(h => h.textContent === "Held")).display')" none 'no queue has held messages: no column'
is "$(js '(shown[0].held = 7, byId("queues").classList.remove("no-held"), getComputedStyle([...document.querySelectorAll("#queues th")].find(h => h.textContent === "Held")).display)')" table-cell 'else there is one'
like "$(js 'byId("zone").textContent')" '^times in .' 'the time zone is said once'
js_wait 30 '[...document.querySelectorAll("#queues tbody td")].filter(c => c.dataset.label === "Done/s" && /[0-9]/.test(c.textContent)).length > 5' 'most queues have a rate'

# -- latency has a plot beside the rates; on a phone only in the open row
late() { js "(e => e.getClientRects().length > 0 && e.getBoundingClientRect().top === e.previousElementSibling.getBoundingClientRect().top)($(row mail).querySelector('td.late'))"; }
js_wait 30 "$(row mail).querySelector('.plot.late path:nth-child(2)').getAttribute('d').includes('L')" 'latency is plotted in each row'
for width in 1024 1280 1440; do
	size $width 900
	is "$(late)" true "at $width pixels, the plot of latency is beside the rates"
done
size 375 812
is "$(late)" false 'not on a phone'
size 1280 900
like "$(js '[4, 45, 200, 4000].map(n => span(scale(n, span))).join()')" '^5\.0s,1m,5m,2h$' 'scales of latency end at round times'

# -- large figures in all columns
cat >"$T/large.js" <<'J'
(() => {
	for (const q of shown) {
		for (const name of ['waiting', 'held', 'retry', 'delayed', 'dead'])
			q[name] = 99999;
		Object.assign(q, { running: 100, concurrency: 256, okRate: 9999, failRate: 9999, latency: 3599, oldest: 3599 });
	}
	byId('queues').classList.remove('no-held');
	listQueues();
	const cut = [...document.querySelectorAll('#queues td')].filter(c => c.getClientRects().length && c.scrollWidth > c.clientWidth + 1);
	return (document.documentElement.scrollWidth <= innerWidth ? '' : 'too wide ') + cut.map(c => c.dataset.label).join();
})()
J
for width in 390 1024 1280 1440; do
	size $width 900
	is "$(js "$(cat "$T/large.js")")" '' "at $width pixels, five digits fit into all columns"
done
size 1280 900

# -- a row opens
button() { echo "$(row "$1").querySelector('button[aria-controls]')"; }
is "$(js "$(button mail).getAttribute('aria-expanded')")" false 'rows are closed at first'
expanded() { [ "$(js "$(button mail).getAttribute('aria-expanded')")" = true ]; }
js '(window.heads = () => [...document.querySelectorAll("#queues th")].map(h => Math.round(h.getBoundingClientRect().left)).join())' >/dev/null
is "$(js '(before => (queueTable.toggle("mail"), heads() === before || before + " then " + heads()))(heads())')" true 'the columns do not move when a row opens'
is "$(js '(before => (queueTable.toggle("mail"), heads() === before || before + " then " + heads()))(heads())')" true 'and when it closes'
wait_ok 10 'expanded || { click "$(row mail).cells[2]"; expanded; }' 'a click opens a row'
is "$(js "document.getElementById($(button mail).getAttribute('aria-controls')).className")" detail 'aria-controls names the row that opens'
text_wait 10 mail .cause '^mail: suspended: .* Its command always failed\.' 'an open row says why the queue is suspended'
text_wait 10 mail .commands 'journalctl .*RQD_QUEUE=mail' 'an open row has the commands that help'
text_wait 10 mail .servers 'web1\.[A-Za-z0-9]*.*suspended.*web2\.' 'an open row has the daemons that serve the queue'
like "$(js 'serverLine({ instance: "a", lease: 30, config: "c" }, true).join(" ")')" ', lease 30s, configuration c$' 'daemons are shown with their leases if these differ'
is "$(js "$(below mail .figures).children.length")" 3 'an open row has three larger plots'
like "$(js "$(below mail .times).textContent")" '^([0-9][0-9]:[0-9][0-9]){3}now$' 'larger plots have times'
text_wait 10 mail '.frame .top' '^[125]0*$' 'larger plots have a scale'
open_row mail
is "$(js "document.querySelectorAll('tr.detail').length")" 0 'another click closes the row'

js "$(button invoices).focus()" >/dev/null
key '\uE007'
is "$(js "$(button invoices).getAttribute('aria-expanded')")" true 'the Enter key opens a row'
text_wait 10 invoices .error 'died .* on .*: the handler said dead, attempt 1it said: no such customer.*lookup failed: no customer 4711 in table "customers"' 'an open row has the error of the last dead letter'
text_wait 10 invoices .commands 'rqctl -c .*/web1.conf dead list invoices.*dead show invoices [0-9]+.*dead retry --all invoices' 'an open row has commands for dead letters'
text_wait 10 invoices .reasons '^Dead letters by reason1answer: the handler said dead$' 'an open row counts the dead letters by reason'
is "$(js "$(below invoices '.reasons li').title")" 'rqctl dead list --reason answer invoices' 'a reason tells which command lists its dead letters'
ok "$(js "$(below invoices '.reasons li').title" | sed "s|^rqctl|$RQCTL -c $T/web1.conf|") >/dev/null" 'that command works'
is "$(js "(box => (drawReasons(box, { name: 'q' }, { total: 1204, looked: 250, reasons: { other: 9, attempts: 41, status: 200, odd: 'x' } }), [...box.querySelectorAll('h3, b')].map(e => e.textContent).join()))(part('', '', element('ul')))")" \
    'Dead letters by reason, the newest 250 of 1,204,200,41,9' 'the most frequent reason is the first, and the page says how many letters were counted'
command=$(js "$(below invoices '.commands li:nth-child(2) code').textContent")
ok "$(echo "$command" | sed "s|^rqctl|$RQCTL|") >/dev/null" 'a command for dead letters works as it is written'
key '\uE00D'
is "$(js "document.querySelectorAll('tr.detail').length")" 0 'the space bar closes a row'

open_row imports
text_wait 10 imports .cause 'suspended: cannot_execute.* Its command cannot be started' 'an open row says that the command cannot be started'
text_wait 10 imports .why '^command .*/import-csv: No such file or directory$' 'an open row names the missing command, and the error'
open_row reports
text_wait 10 reports .cause '^reports: paused by .*: month end, ask ann\.' 'an open row says who paused the queue, and why'
text_wait 10 reports .commands 'resume reports' 'an open row has the command that resumes the queue'
text_wait 10 reports .ticks 'nightly0 3 \* \* \* UTC; last .*; next .*; missed ' 'an open row has the schedule, with the missed run'
is "$(js "document.querySelectorAll('tr.detail').length")" 2 'several rows can be open'

# -- configurations: those of web1 and web2 differ in name and listener only
is "$(js 'document.querySelector("#configs").hidden')" true 'another name of a daemon does not count as another configuration'
like "$(js '((shown[0].differs = "at most 1 to 4 messages in flight"), showConfigs([{ config: "a" }, { config: "b" }]), document.querySelector("#configs").textContent)')" \
    'run 2 different configurations; [a-z]+: at most 1 to 4 messages in flight\. If they' 'different configurations are reported with the queues that differ'

# -- copying
js '(window.copied = "", navigator.clipboard.writeText = async t => { window.copied = t; })' >/dev/null
js "(window.said = [], new MutationObserver(list => list.forEach(m => window.said.push(m.target.textContent))).observe($(below reports '.commands button'), { childList: true, characterData: true, subtree: true }))" >/dev/null
js "$(below reports '.commands button').click()" >/dev/null
js_wait 5 'window.copied.endsWith("resume reports")' 'a button copies its command'
js_wait 5 'window.said.includes("Copied")' 'the button says that it has copied'
js '(window.copied = "", navigator.clipboard.writeText = async () => { throw new Error(); }, document.addEventListener("copy", () => { window.copied = String(getSelection()); }))' >/dev/null
# Rows may move between the look and the click, so try again.
wait_ok 20 'click "$(below reports ".commands button")"; [ "$(js "window.copied.endsWith(\"resume reports\")")" = true ]' \
    'the button copies if the browser has no clipboard, too'
js 'getSelection().removeAllRanges()' >/dev/null

# -- schedules
is "$(js 'document.querySelectorAll("#schedules tbody tr").length')" 2 'all schedules are shown'
like "$(js 'document.querySelector("#schedules tbody").textContent')" '^nightlyreportsmissed .*cleanuporders' 'the schedule with a missed run comes first'
like "$(js '[...document.querySelectorAll("#schedules tbody tr")].map(r => r.cells[2].textContent + " " + r.cells[4].textContent).join()')" \
    '0 3 \* \* \* UTC .*\(in .*every 1m .*\(in ' 'schedules have their rules, and the time to the next run'

# -- an answer changes texts; it does not replace rows
js '(window.removed = 0, window.kept = [...document.querySelectorAll("#queues tr")], window.seen = new MutationObserver(list => { for (const m of list) for (const n of m.removedNodes) if (n.nodeType === 1) window.removed++; }), window.seen.observe(document.body, { childList: true, subtree: true }), performance.clearResourceTimings())' >/dev/null
js_wait 20 'performance.getEntriesByName(new URL("status", location).href).length > 3' 'four more answers come'
is "$(js 'window.kept.every(r => r.isConnected)')" true 'all rows are the same elements after these answers'
is "$(js "document.querySelectorAll('tr.detail').length")" 2 'open rows stay open after these answers'
# A row that moves, because its figures have changed, is removed and inserted.
ok '[ "$(js "window.removed")" -le 12 ]' 'at most 12 elements were removed by these answers'
is "$(js '(window.seen.disconnect(), [...document.querySelectorAll("#queues tbody td")].every(c => getComputedStyle(c).transitionDuration === "0s"))')" true 'cells have no transition'

# -- contrast: every text with its background, in both schemes and in all moods
cat >"$T/contrast.js" <<'J'
(() => {
	const rgba = text => {
		const n = text.match(/[\d.]+/g).map(Number);
		return text.startsWith('color(srgb') ? n.map((v, i) => i < 3 ? v * 255 : v) : n;
	};
	const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
	    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)); };
	const ground = e => {
		const back = rgba(getComputedStyle(e).backgroundColor);
		return (back[3] ?? 1) === 1 ? back : over(back, e.parentElement ? ground(e.parentElement) : [255, 255, 255]);
	};
	const ratio = (a, b) => { const l = [light(a), light(b)].sort((x, y) => y - x); return (l[0] + 0.05) / (l[1] + 0.05); };
	const all = document.createElement('div');
	for (const cls of ['pill', 'link', 'banner', 'cause'])
		for (const mood of ['', 'ok', 'warn', 'bad', 'idle'])
			all.append(Object.assign(document.createElement('p'), { className: cls + ' ' + mood, textContent: 'x' }));
	document.querySelector('main').append(all);
	const bad = [];
	let seen = 0;
	for (const e of document.querySelectorAll('body *')) {
		const style = getComputedStyle(e);
		if (style.opacity !== '1')
			bad.push(e.className + ' is see-through');
		if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length)
			continue;
		seen++;
		const r = ratio(rgba(style.color), ground(e));
		if (r < 4.5)
			bad.push((e.className || e.tagName) + ' ' + r.toFixed(2));
	}
	for (const e of document.querySelectorAll('.plot:not(.flat) path:not(.area)')) {
		const r = ratio(rgba(getComputedStyle(e).stroke), ground(e.closest('td, .sum')));
		if (r < 3)
			bad.push('line ' + r.toFixed(2));
	}
	all.remove();
	return (seen > 150 ? '' : 'only ' + seen + ' texts, ') + [...new Set(bad)].join();
})()
J
scheme light
is "$(js "$(cat "$T/contrast.js")")" '' 'contrast in light colours: 4.5:1 for text, 3:1 for lines'
scheme dark
is "$(js "$(cat "$T/contrast.js")")" '' 'contrast in dark colours'
js 'document.body.classList.add("stale")' >/dev/null
is "$(js "$(cat "$T/contrast.js")")" '' 'contrast in dark colours while figures are old'
scheme light

# -- a phone
size 375 812
is "$(js 'document.documentElement.scrollWidth <= innerWidth')" true 'on a phone the page needs no horizontal scrolling, with open rows'
ok '[ "$(js "document.querySelector(\"#queues tbody tr\").getBoundingClientRect().top < innerHeight / 3")" = true ]' 'on a phone the first queue is in the first third of the screen'
is "$(js '[...document.querySelectorAll("button.open, button.copy")].every(b => b.getBoundingClientRect().height >= 24)')" true 'buttons are at least 24 pixels high'
open_row mail
text_wait 10 mail .cause '^mail: suspended' 'a row opens on a phone'
is "$(js 'document.documentElement.scrollWidth <= innerWidth')" true 'the row that was opened fits on the phone'
size 320 700
is "$(js 'document.documentElement.scrollWidth <= innerWidth')" true 'the page also fits on a small phone'
is "$(complaints)" '' 'the browser reports no error so far'

# -- a listener that hides ids, errors and progress
size 1280 900
ok '[ "$(js "byId(\"hidden\").hidden")" = true ]' 'nothing is hidden with details = true'
sed -i 's| details = true||' "$T/web1.conf"
rqd_signal HUP web1
js_wait 20 '!byId("hidden").hidden && byId("hidden").textContent.includes("details = true")' 'the page says that it hides something, and how to see it'
open_row invoices
text_wait 10 invoices .error '^Last error.*shows no ids, errors and progress.*rqctl' 'an open row says that the last error is hidden'
text_wait 10 invoices .reasons '1answer: the handler said dead$' 'and has the reasons of dead letters'
open_row invoices

# -- old figures
rqd_kill9 web1
js_wait 30 'document.querySelector("#link span").textContent === "disconnected"' 'the page says that the daemon is gone'
age='document.querySelector("#banner").textContent.match(/ below are ([0-9]*)s old/)[1]'
js_wait 20 "$age >= 3" 'the banner says how old the figures are'
before=$(js "$age")
js_wait 20 "$age > $before" 'the age in the banner grows'
is "$(js 'document.querySelectorAll("tr.detail").length')" 3 'open rows stay open while the daemon is gone'
browser_stop

/*
 * Draws /status, again and again: what `rqctl status -w` shows, with plots.
 *
 * One question every POLL while somebody looks; none while the page is hidden.
 * Rows are made once per queue and daemon and then only written over, so nothing
 * flickers and a selection stays.  Everything that comes from the daemon is written
 * as text, never as HTML.
 *
 * Rates are differences of totals that daemons add up in Redis about every 10
 * seconds, so they are taken over RATE_SPAN.  Plots keep HISTORY; a reload of the
 * page keeps them, too.
 */
"use strict";

const POLL = 2000;			/* milliseconds */
const POLL_AT_WORST = 10000;		/* while nobody answers */
const PATIENCE = 8000;			/* for one answer */
const RATE_SPAN = 21000;
const RATE_LEAST = 9000;		/* before that a rate would be a guess */
const HISTORY = 5 * 60 * 1000;
const HISTORY_LEAST = 45 * 1000;	/* that a plot is wide */
const FIND_FROM = 8;			/* queues from which on a field to find one helps */

const byId = id => document.getElementById(id);

/* -- what came from the daemon -------------------------------------------------- */

/*
 * Parts of the answer come from Redis, where anybody may have written them.  So every
 * member passes one of these; what has another type becomes nothing.
 */
const textOf = v => typeof v === "string" ? v : "";
const numberOf = v => typeof v === "number" && isFinite(v) ? v : null;
const objectOf = v => v !== null && typeof v === "object" && !Array.isArray(v) ? v : {};
const listOf = v => Array.isArray(v) ? v.map(objectOf) : [];

/* -- figures as people read them --------------------------------------------- */

function number(n) {
	if (n === null || n === undefined)
		return "\u2013";
	if (n < 100000)
		return n.toLocaleString("en");
	if (n < 999500)
		return (n / 1e3).toFixed(0) + "K";
	return n < 999.5e6 ? (n / 1e6).toPrecision(3) + "M" : (n / 1e9).toPrecision(3) + "G";
}

function rate(r) {
	if (r === null)
		return "\u2013";
	return r === 0 ? "0" : r < 10 ? r.toFixed(1) : number(Math.round(r));
}

function age(s) {
	if (s === null || s === undefined || s < 0)
		return "\u2013";
	if (s < 60)
		return s < 10 ? s.toFixed(1) + "s" : Math.floor(s) + "s";
	if (s < 3600)
		return Math.floor(s / 60) + "m " + Math.floor(s % 60) + "s";
	if (s < 86400)
		return Math.floor(s / 3600) + "h " + Math.floor(s % 3600 / 60) + "m";
	return Math.floor(s / 86400) + "d " + Math.floor(s % 86400 / 3600) + "h";
}

/* -- elements ------------------------------------------------------------------ */

function element(name, cls, text) {
	const e = document.createElement(name);

	if (cls)
		e.className = cls;
	if (text !== undefined)
		e.textContent = text;
	return e;
}

function write(e, text) {
	if (e.textContent !== text)
		e.textContent = text;
}

function dress(e, cls) {
	if (e.className !== cls)
		e.className = cls;
}

/* -- plots --------------------------------------------------------------------- */

const SVG = "http://www.w3.org/2000/svg";

function plot(cls, lines) {
	const svg = document.createElementNS(SVG, "svg");

	svg.setAttribute("class", "plot " + cls);
	svg.setAttribute("viewBox", "0 0 100 30");
	svg.setAttribute("preserveAspectRatio", "none");
	svg.setAttribute("role", "img");
	for (const line of ["area"].concat(lines)) {
		const path = document.createElementNS(SVG, "path");
		path.setAttribute("class", line);
		svg.append(path);
	}
	return svg;
}

/* All plots begin when the first of them does, so that they can be compared. */
let plotsFrom = Date.now();

function axis(now) {
	const span = Math.min(HISTORY, Math.max(HISTORY_LEAST, now - plotsFrom));

	return t => (100 * (1 - (now - t) / span)).toFixed(2);
}

/* A path through the points [time, value]; a long silence is a gap in the line. */
function path(points, x, max) {
	let d = "", last = null;

	for (const [t, v] of points) {
		const y = (28 - 26 * v / max).toFixed(2);
		d += (last === null || t - last > 4 * POLL_AT_WORST ? "M" : "L") + x(t) + " " + y;
		last = t;
	}
	return d;
}

/* The first line is filled down to the ground; others are left out while they are 0. */
function drawPlot(svg, lines, what) {
	const now = Date.now(), x = axis(now);
	const known = lines.map(points => points.filter(p => p[1] !== null));
	const max = Math.max(1e-9, ...known.flat().map(p => p[1]));
	const paths = svg.querySelectorAll("path");
	const first = known[0];

	known.forEach((points, i) => paths[i + 1].setAttribute("d",
	    i === 0 || points.some(p => p[1] > 0) ? path(points, x, max) : ""));
	if (first.length > 1)
		paths[0].setAttribute("d", path(first, x, max).replace(/M/g, "L").replace("L", "M") +
		    "L" + x(first[first.length - 1][0]) + " 30L" + x(first[0][0]) + " 30Z");
	svg.classList.toggle("flat", max < 1e-6);
	svg.setAttribute("aria-label", what + " of the last minutes, at most " + rate(max < 1e-6 ? 0 : max));
}

/* -- what was ------------------------------------------------------------------ */

/* Of each queue, by key: [time, depth, acked, failed, rate of acked, rate of failed]. */
const past = new Map();

function perSecond(samples, i, sample) {
	const then = samples.find(s => sample[0] - s[0] <= RATE_SPAN);

	if (then === undefined || sample[0] - then[0] < RATE_LEAST || sample[i] < then[i])
		return null;
	return (sample[i] - then[i]) / ((sample[0] - then[0]) / 1000);
}

function remember(key, depth, acked, failed) {
	const samples = past.get(key) || [];
	const sample = [Date.now(), depth, acked, failed, null, null];

	sample[4] = perSecond(samples, 2, sample);
	sample[5] = perSecond(samples, 3, sample);
	samples.push(sample);
	while (samples[0][0] < sample[0] - HISTORY)
		samples.shift();
	past.set(key, samples);
	return samples;
}

function forgetOld() {
	plotsFrom = Date.now();
	for (const [key, samples] of past)
		if (samples[samples.length - 1][0] < Date.now() - HISTORY)
			past.delete(key);
		else
			plotsFrom = Math.min(plotsFrom, samples[0][0]);
}

/* A reload of the page must not cost the plots. */
function keepPast() {
	try {
		sessionStorage.setItem("past", JSON.stringify([...past]));
	} catch (e) {
		/* full or forbidden: then not */
	}
}

function recallPast() {
	try {
		for (const [key, samples] of JSON.parse(sessionStorage.getItem("past") || "[]"))
			past.set(key, samples.filter(s => s[0] > Date.now() - HISTORY));
		for (const [key, samples] of past)
			if (samples.length === 0)
				past.delete(key);
	} catch (e) {
		past.clear();
	}
}

/* -- tables --------------------------------------------------------------------- */

/*
 * A table of rows that have a key.  Columns: label, class, and write(cell, item);
 * value(item) where it can be sorted.
 */
class Table {
	constructor(table, columns, sort) {
		this.columns = columns;
		this.body = table.tBodies[0];
		this.rows = new Map();
		this.sort = sort;
		this.head(table.tHead.rows[0]);
	}

	head(row) {
		this.heads = this.columns.map((column, i) => {
			const th = element("th", column.cls);
			th.scope = "col";
			if (column.value) {
				const button = element("button", "", column.label);
				button.type = "button";
				button.addEventListener("click", () => this.sortBy(i));
				th.append(button);
			} else
				th.textContent = column.label;
			row.append(th);
			return th;
		});
		this.markSort();
	}

	markSort() {
		this.heads.forEach((th, i) => {
			if (this.sort && i === this.sort.column)
				th.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
			else
				th.removeAttribute("aria-sort");
		});
	}

	/* Names begin with the first, figures with the largest. */
	sortBy(i) {
		const down = typeof this.columns[i].value(this.items[0] || {}) !== "string";

		this.sort = this.sort.column === i ? { column: i, down: !this.sort.down } :
		    { column: i, down: down };
		this.markSort();
		this.show(this.items);
	}

	order(items) {
		const value = this.sort && this.columns[this.sort.column].value;

		if (!value)
			return items;
		return items.map((item, i) => [value(item), i, item]).sort((a, b) => {
			const d = a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
			return (this.sort.down ? -d : d) || a[1] - b[1];
		}).map(x => x[2]);
	}

	row(key) {
		let row = this.rows.get(key);

		if (!row) {
			row = element("tr");
			for (const column of this.columns) {
				const cell = element("td", column.cls);
				cell.dataset.label = column.label;
				row.append(cell);
			}
			this.rows.set(key, row);
		}
		return row;
	}

	show(items) {
		const gone = new Set(this.rows.keys());

		this.items = items;
		this.order(items).forEach((item, i) => {
			const row = this.row(item.id);
			dress(row, item.mood || "");
			gone.delete(item.id);
			this.columns.forEach((column, k) => column.write(row.cells[k], item));
			if (this.body.rows[i] !== row)
				this.body.insertBefore(row, this.body.rows[i] || null);
		});
		for (const key of gone) {
			this.rows.get(key).remove();
			this.rows.delete(key);
		}
	}
}

/* A figure; nothing is pale, and a class of its own marks what matters. */
function figure(cell, n, cls) {
	write(cell, number(n));
	dress(cell, "n" + (n ? (cls ? " " + cls : "") : " zero"));
}

function writeName(cell, q) {
	if (!cell.firstChild)
		cell.append(element("span"), element("small"));
	write(cell.firstChild, q.name);
	write(cell.lastChild, q.kind === "ack" ? "" : q.kind);
}

function writeState(cell, q) {
	if (!cell.firstChild)
		cell.append(element("span"));
	write(cell.firstChild, q.state);
	dress(cell.firstChild, "pill " + q.mood);
}

function writeRunning(cell, q) {
	if (!cell.firstChild) {
		const meter = element("span", "meter");
		meter.append(element("i"));
		cell.append(element("span"), meter);
	}
	write(cell.firstChild, number(q.running) + (q.concurrency ? "/" + q.concurrency : ""));
	cell.lastChild.hidden = !q.concurrency;
	cell.lastChild.firstChild.style.width =
	    Math.min(100, 100 * (q.running || 0) / (q.concurrency || 1)) + "%";
	dress(cell, "n" + (q.running ? "" : " zero"));
}

function writePlot(cls, lines, what, points) {
	return (cell, q) => {
		if (!cell.firstChild)
			cell.append(plot(cls, lines));
		drawPlot(cell.firstChild, points(q), what);
	};
}

/* ">12m": it has waited since before the daemon's first look. */
function writeLatency(cell, q) {
	const least = q.latency === null && q.latency_least !== null;

	write(cell, least ? ">" + age(q.latency_least) : age(q.latency));
	dress(cell, q.latency || least ? "n" : "n zero");
}

const column = (samples, i) => samples.map(s => [s[0], s[i]]);
const MOODS = { bad: 0, warn: 1, ok: 2, idle: 3 };

const queueTable = new Table(byId("queues"), [
	{ label: "Queue", cls: "name", write: writeName, value: q => q.name },
	{ label: "State", cls: "state", write: writeState, value: q => MOODS[q.mood] + q.state },
	{ label: "Waiting", cls: "n", value: q => q.waiting,
	    write: (cell, q) => figure(cell, q.waiting, "strong") },
	{ label: "Running", cls: "n", write: writeRunning, value: q => q.running },
	{ label: "Retry", cls: "n", write: (cell, q) => figure(cell, q.retry), value: q => q.retry },
	{ label: "Delayed", cls: "n", write: (cell, q) => figure(cell, q.delayed), value: q => q.delayed },
	{ label: "Dead", cls: "n", write: (cell, q) => figure(cell, q.dead, "bad"), value: q => q.dead },
	{ label: "Done/s", cls: "n", value: q => q.okRate,
	    write: (cell, q) => { write(cell, rate(q.okRate)); dress(cell, q.okRate ? "n" : "n zero"); } },
	{ label: "Failed/s", cls: "n", value: q => q.failRate,
	    write: (cell, q) => { write(cell, rate(q.failRate)); dress(cell, q.failRate ? "n bad" : "n zero"); } },
	{ label: "Latency", cls: "n", value: q => q.latency === null ? q.latency_least : q.latency, write: writeLatency },
	{ label: "Oldest run", cls: "n", value: q => q.oldest,
	    write: (cell, q) => { write(cell, age(q.oldest)); dress(cell, q.oldest === null ? "n zero" : "n"); } },
	{ label: "Depth", cls: "plots",
	    write: writePlot("", ["depth"], "Depth", q => [column(q.samples, 1)]) },
	{ label: "Done, failed", cls: "plots second",
	    write: writePlot("rate", ["done", "fail"], "Rates", q => [column(q.samples, 4), column(q.samples, 5)]) },
], { column: 0, down: false });

/* What handlers told of their messages; those that have run longest. */
const progressTable = new Table(byId("progress"), [
	{ label: "Message", cls: "name", value: p => p.queue + " " + p.message,
	    write: (cell, p) => {
		    if (!cell.firstChild)
			    cell.append(element("span"), element("small"));
		    write(cell.firstChild, p.message);
		    write(cell.lastChild, p.queue);
	    } },
	{ label: "Progress", cls: "state", write: (cell, p) => write(cell, p.progress) },
	{ label: "Attempt", cls: "n", write: (cell, p) => write(cell, number(p.attempt)) },
	{ label: "Running for", cls: "n", value: p => p.age, write: (cell, p) => write(cell, age(p.age)) },
	{ label: "Daemon", cls: "mono", write: (cell, p) => write(cell, p.daemon) },
], { column: 3, down: true });

function writeStates(cell, d) {
	const states = d.states;
	const text = states.length === 0 ? ["ok"] : states.slice(0, 4).map(s => s[0] + ": " + s[1]);

	if (states.length > 4)
		text.push((states.length - 4) + " more");
	while (cell.childNodes.length > text.length)
		cell.lastChild.remove();
	text.forEach((t, i) => {
		if (!cell.childNodes[i])
			cell.append(element("span"));
		write(cell.childNodes[i], t);
		dress(cell.childNodes[i], "pill " + (states.length === 0 ? "ok" :
		    states[i] && ["suspended", "refused"].includes(states[i][1]) ? "bad" : "warn"));
	});
}

const daemonTable = new Table(byId("daemons"), [
	{ label: "Daemon", cls: "name", value: d => d.name + " " + d.instance,
	    write: (cell, d) => {
		    if (!cell.firstChild)
			    cell.append(element("span"), element("small"));
		    write(cell.firstChild, d.name || d.instance);
		    write(cell.lastChild, d.here ? d.instance + ", this one" : d.instance);
	    } },
	{ label: "Queues' states", cls: "state", write: writeStates },
	{ label: "Running", cls: "n", write: (cell, d) => write(cell, number(d.running) + "/" + number(d.max_handlers)) },
	{ label: "Queues", cls: "n", write: (cell, d) => write(cell, number(d.queues)) },
	{ label: "Up", cls: "n", write: (cell, d) => write(cell, age(d.up)) },
	{ label: "Seen", cls: "n",
	    write: (cell, d) => { write(cell, age(d.seen)); dress(cell, d.seen > 20 ? "n bad" : "n"); } },
	{ label: "Version", cls: "n", write: (cell, d) => write(cell, d.version) },
	{ label: "PID", cls: "n", write: (cell, d) => write(cell, String(d.pid || "")) },
	{ label: "Config", cls: "mono", write: (cell, d) => write(cell, d.config.slice(0, 8)) },
], { column: 0, down: false });

/* -- sums ------------------------------------------------------------------------ */

const SUMS = [
	["Waiting", "waiting"], ["Running", "running"], ["Retry", "retry"], ["Delayed", "delayed"],
	["Dead", "dead"],
];

function sumBox(label, cls) {
	const box = element("div", "sum " + cls), text = element("p");

	text.append(element("b", "", "\u2013"), element("span", "", label));
	box.append(text);
	byId("sums").append(box);
	return box;
}

const sumBoxes = SUMS.map(([label]) => sumBox(label, ""));
const depthBox = sumBox("Depth", "wide");
const rateBox = sumBox("Done/s", "wide");

depthBox.append(plot("", ["depth"]));
rateBox.append(plot("rate", ["done", "fail"]));

function showSums(queues) {
	const sum = of => queues.reduce((n, q) => n + (of(q) || 0), 0);
	const depth = sum(q => q.depth);
	const samples = remember("\n all", depth, sum(q => q.totals.acked), sum(q => q.totals.failed));
	const now = samples[samples.length - 1];

	SUMS.forEach(([, member], i) => {
		const n = sum(q => q[member]);
		write(sumBoxes[i].querySelector("b"), number(n));
		dress(sumBoxes[i], "sum" + (member === "dead" && n > 0 ? " bad" : ""));
	});
	write(depthBox.querySelector("b"), number(depth));
	write(rateBox.querySelector("b"), rate(now[4]));
	write(rateBox.querySelector("span"), now[5] ? "Done/s, " + rate(now[5]) + " failed" : "Done/s");
	drawPlot(depthBox.lastChild, [column(samples, 1)], "Depth of all queues");
	drawPlot(rateBox.lastChild, [column(samples, 4), column(samples, 5)], "Rates of all queues");
}

/* -- the whole ------------------------------------------------------------------- */

let shown = null;	/* the last answer that had queues, as it is shown */
let version = null;	/* of the daemon that this page came from */

const FIGURES = ["waiting", "running", "retry", "due", "delayed", "dead", "concurrency", "oldest",
    "latency", "latency_least"];

function queueItem(from) {
	const q = { id: textOf(from.key), name: textOf(from.name), kind: textOf(from.kind), state: textOf(from.state) };
	const totals = objectOf(from.totals);

	for (const name of FIGURES)
		q[name] = numberOf(from[name]);
	q.mood = Object.hasOwn(MOODS, textOf(from.mood)) ? from.mood : "warn";
	q.totals = { acked: numberOf(totals.acked) || 0, failed: numberOf(totals.failed) || 0 };
	/* What is there to be done: also what failed and is due again. */
	q.depth = (q.waiting || 0) + (q.due || 0);
	q.samples = remember(q.id, q.depth, q.totals.acked, q.totals.failed);
	[q.okRate, q.failRate] = q.samples[q.samples.length - 1].slice(4);
	return q;
}

function progressItem(from) {
	const p = { message: textOf(from.id) || textOf(from.id_base64) };

	for (const name of ["queue", "progress", "daemon"])
		p[name] = textOf(from[name]);
	for (const name of ["attempt", "age"])
		p[name] = numberOf(from[name]);
	p.id = p.queue + "\n" + p.message + "\n" + p.daemon;
	return p;
}

function daemonItem(from, here, time) {
	const d = { id: textOf(from.instance), instance: textOf(from.instance), name: textOf(from.name),
	    version: textOf(from.version), config: textOf(from.config) };
	const started = numberOf(from.started);

	for (const name of ["pid", "running", "queues", "max_handlers", "seen"])
		d[name] = numberOf(from[name]);
	d.states = Object.entries(objectOf(from.states)).map(([name, state]) => [name, textOf(state)]);
	d.here = d.instance === here;
	d.up = started === null ? null : Math.max(0, time - started);
	return d;
}

function listQueues() {
	const wanted = byId("find").value.trim().toLowerCase();
	const some = shown.filter(q => (q.name + " " + q.state + " " + q.kind).toLowerCase().includes(wanted));

	queueTable.show(some);
	write(byId("queues-count"), some.length === shown.length ? String(shown.length) :
	    some.length + " of " + shown.length);
	document.querySelector(".find").hidden = shown.length < FIND_FROM && wanted === "";
	byId("empty").hidden = some.length > 0;
	write(byId("empty"), shown.length > 0 ? "No queue is called so." :
	    "No queue is served: add one to the configuration and reload.");
}

function showLink(cls, text) {
	dress(byId("link"), "link " + cls);
	write(byId("link").lastChild, text);
}

function showBanner(cls, text) {
	byId("banner").hidden = text === "";
	dress(byId("banner"), "banner " + cls);
	write(byId("banner"), text);
}

function showTitle(problems, where) {
	document.title = (problems > 0 ? "(" + problems + ") " : "") + "rqd" + (where ? " on " + where : "");
}

/* Sentences about the whole that do not belong to one queue. */
function warnings(status) {
	const list = [];

	if (status.daemon.reload_failed)
		list.push("The configuration file has errors: the daemon goes on with the former one. " +
		    "rqd -t says what is wrong.");
	if (status.daemon.state !== "running")
		list.push("This daemon is " + status.daemon.state + ".");
	return list.join(" ");
}

/* Items of one key would share a row. */
const eachOnce = items => [...new Map(items.map(item => [item.id, item])).values()];

function showQueues(status) {
	const time = Date.parse(status.time) / 1000;
	const fleet = eachOnce(listOf(status.fleet).map(d => daemonItem(d, status.daemon.instance, time)));

	shown = eachOnce(listOf(status.queues).map(queueItem));
	forgetOld();
	listQueues();
	showSums(shown);
	daemonTable.show(fleet);
	write(byId("daemons-count"), String(fleet.length));
	const progress = eachOnce(listOf(status.progress).map(progressItem));
	byId("progress-section").hidden = progress.length === 0;
	progressTable.show(progress);
	write(byId("progress-count"), String(progress.length));
}

/* The members that are shown; each has its type. */
function daemonOf(from) {
	const d = { reload_failed: from.reload_failed === true, redis: {} };
	const redis = objectOf(from.redis);

	for (const name of ["name", "version", "instance", "state"])
		d[name] = textOf(from[name]);
	for (const name of ["server", "version", "error"])
		d.redis[name] = textOf(redis[name]);
	d.redis.up = redis.up === true;
	return d;
}

function show(answer) {
	const from = objectOf(answer);
	const status = { time: textOf(from.time), daemon: daemonOf(objectOf(from.daemon)),
	    queues: Array.isArray(from.queues) ? from.queues : null, fleet: from.fleet,
	    progress: from.progress };
	const d = status.daemon, redis = d.redis;

	/* A new version has a new page. */
	if (version !== null && version !== d.version)
		location.reload();
	version = d.version;
	if (status.queues)
		showQueues(status);
	const problems = status.queues ? shown.filter(q => q.mood === "bad").length : 0;

	document.body.classList.toggle("stale", !status.queues);
	write(byId("name"), d.name);
	write(byId("where"), "Redis " + redis.server + (redis.version ? ", version " + redis.version : ""));
	write(byId("foot"), "rqd " + d.version + ", " + d.instance + ", " + status.time.slice(0, 19).replace("T", " ") + " UTC");
	showTitle(redis.up ? problems : "!", d.name);
	if (!redis.up) {
		showLink("bad", "Redis is down");
		showBanner("", "Redis does not answer: " + (redis.error || "no reason is known") +
		    ". Messages and results wait; the daemon tries again by itself.");
	} else if (!status.queues) {
		showLink("warn", "Redis is slow");
		showBanner("warn", "Redis did not answer in time: the figures are older.");
	} else {
		showLink("ok", "live");
		showBanner("warn", warnings(status));
	}
}

let lost = 0;		/* when the daemon stopped answering; 0: it answers */
let wait = POLL;

function showLost() {
	const since = lost === 0 ? "" : " since " + new Date(lost).toLocaleTimeString();

	document.body.classList.add("stale");
	showLink("bad", "disconnected");
	showTitle("!", "");
	showBanner("", "The daemon does not answer" + since + ". What is shown is older; asking again\u2026");
}

/* -- asking ---------------------------------------------------------------------- */

let timer = 0;
let asking = null;	/* AbortController of the question that is out */

async function ask() {
	const control = new AbortController();
	const late = setTimeout(() => control.abort(), PATIENCE);

	asking = control;
	try {
		const answer = await fetch("status", { cache: "no-store", signal: control.signal });
		if (!answer.ok)
			throw new Error(answer.status);
		const status = await answer.json();
		lost = 0;
		wait = POLL;
		show(status);
	} catch (e) {
		lost = lost || Date.now();
		wait = Math.min(POLL_AT_WORST, wait * 1.5);
		if (!document.hidden)
			showLost();
	} finally {
		clearTimeout(late);
		asking = null;
		again();
	}
}

function again() {
	clearTimeout(timer);
	if (!document.hidden)
		timer = setTimeout(ask, wait);
}

document.addEventListener("visibilitychange", () => {
	clearTimeout(timer);
	if (!document.hidden && !asking)
		ask();
});
window.addEventListener("online", () => { wait = POLL; if (!asking) ask(); });
window.addEventListener("pagehide", keepPast);
byId("find").addEventListener("input", () => { if (shown) listQueues(); });

recallPast();
ask();

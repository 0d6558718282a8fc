/*
 * The page: shows what `rqctl status -w` shows, and plots.
 *
 * The script requests /status every POLL while the page is visible.  It makes a row once for
 * each queue and daemon, and then only changes the row's text, so nothing flickers and a
 * selection stays.  It writes text from the daemon as text, never as HTML.
 *
 * The daemon keeps the history of the last 15 minutes.  The script reads /history at first and
 * after an interruption.  Then it adds a sample from /status every STEP.  For each open row it
 * also requests /queue with every POLL.
 */
"use strict";

const POLL = 2000;			/* milliseconds */
const POLL_AT_WORST = 10000;		/* while the daemon does not answer */
const PATIENCE = 8000;			/* time limit of a request */
const STEP = 9500;			/* between two samples, about */
const WINDOW = 15 * 60 * 1000;		/* that plots show */
const GAP = 150 * 1000;			/* longer without a sample: the line is broken */
const DIFFER_MAX = 5;			/* queues with different settings that are named */
const FIND_FROM = 8;			/* with so many queues, the search field is shown */
const HIDDEN = "Over TCP this page shows no ids, errors and progress of messages. To see them, use rqctl, " +
    "let http.listen be a unix socket, or set http { details = true }.";

const byId = id => document.getElementById(id);

/* -- what came from the daemon -------------------------------------------------- */

/*
 * Parts of the answer come from Redis, where other programs may have written them.  So the
 * script reads each member through one of these functions, which replace a value of another
 * type by "", null or an empty object or list.
 */
const textOf = v => typeof v === "string" ? v : "";
const numberOf = v => typeof v === "number" && isFinite(v) ? v : null;
const objectOf = v => v !== null && typeof v === "object" && !Array.isArray(v) ? v : {};
const arrayOf = v => Array.isArray(v) ? v : [];
const listOf = v => arrayOf(v).map(objectOf);

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
	if (r > 0 && r < 0.095)
		return r < 0.01 ? "<0.01" : r.toFixed(2);
	return r === 0 ? "0" : r < 10 ? r.toFixed(1) : number(Math.round(r));
}

function age(s) {
	if (s === null || s === undefined || s < 0)
		return "\u2013";
	if (s < 60)
		return s > 0 && s < 10 ? s.toFixed(1) + "s" : Math.floor(s) + "s";
	if (s < 3600)
		return Math.floor(s / 60) + "m " + Math.floor(s % 60) + "s";
	if (s < 86400)
		return Math.floor(s / 3600) + "h " + Math.floor(s % 3600 / 60) + "m";
	return Math.floor(s / 86400) + "d " + Math.floor(s % 86400 / 3600) + "h";
}

/* A round duration: "1m", not "1m 0s". */
const span = s => age(s).replace(/( 0[smh])+$/, "");

const two = n => String(n).padStart(2, "0");

/* Local time: "03:12:59", with the date if that is not today. */
function moment(seconds) {
	const t = new Date(seconds * 1000 + skew), today = new Date();

	if (isNaN(t))
		return "\u2013";
	return (t.toDateString() === today.toDateString() ? "" : t.getFullYear() + "-" +
	    two(t.getMonth() + 1) + "-" + two(t.getDate()) + " ") +
	    two(t.getHours()) + ":" + two(t.getMinutes()) + ":" + two(t.getSeconds());
}

/* The same, and how long ago or ahead that is. */
function when(seconds) {
	if (seconds === null)
		return "\u2013";
	const left = seconds + (skew - Date.now()) / 1000;

	return moment(seconds) + (left < 0 ? " (" + age(-left) + " ago)" : " (in " + age(left) + ")");
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

function set(e, attribute, value) {
	if (e.getAttribute(attribute) !== value)
		e.setAttribute(attribute, value);
}

/* Gives the parent one child for each item; keeps those that exist, and updates all. */
function fill(parent, items, make, update) {
	while (parent.children.length > items.length)
		parent.lastElementChild.remove();
	items.forEach((item, i) => {
		if (!parent.children[i])
			parent.append(make());
		update(parent.children[i], item);
	});
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

/* The upper ends of scales of seconds, from 10 seconds to a day. */
const SPANS = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 5 * 3600, 12 * 3600, 86400];

/* The upper end of a scale: 1, 2 or 5 times a power of ten, or a round duration. */
function scale(max, text) {
	if (text === span && max > 5 && max <= 86400)
		return SPANS.find(s => s >= max * 0.999);
	const unit = Math.pow(10, Math.floor(Math.log10(max)));

	return [1, 2, 5, 10].map(n => n * unit).find(n => n >= max * 0.999);
}

/* A path through the points [time, value].  Points more than GAP apart are not connected. */
function path(points, x, max) {
	let d = "", last = null;

	for (const [t, v] of points) {
		const y = (29 - 27 * v / max).toFixed(2);
		d += (last === null || t - last > GAP ? "M" : "L") + x(t) + " " + y;
		last = t;
	}
	return d;
}

/* The area between each part of the line and 0. */
function area(points, x, max) {
	return path(points, x, max).split("M").filter(part => part).map(part => {
		const ends = part.split("L").map(p => p.split(" ")[0]);
		return "M" + part + "L" + ends[ends.length - 1] + " 30L" + ends[0] + " 30Z";
	}).join("");
}

/* Returns the end of the scale.  Fills the area of the first line; omits others if all 0. */
function drawPlot(svg, lines, what, text) {
	const now = Date.now(), x = t => (100 * (1 - (now - t) / WINDOW)).toFixed(2);
	const known = lines.map(points => points.filter(p => p[1] !== null && p[0] > now - WINDOW));
	const max = Math.max(0, ...known.flat().map(p => p[1])), end = max > 0 ? scale(max, text) : 1;
	const paths = svg.querySelectorAll("path");

	known.forEach((points, i) => set(paths[i + 1], "d",
	    i === 0 || points.some(p => p[1] > 0) ? path(points, x, end) : ""));
	set(paths[0], "d", max > 0 ? area(known[0], x, end) : "");
	svg.classList.toggle("flat", max === 0);
	set(svg, "aria-label", what + " of the last 15 minutes, at most " + text(max));
	return max > 0 ? end : 0;
}

/* A plot with its scale and times, for an open row. */
function figurePlot(title, cls, lines) {
	const figure = element("figure"), frame = element("div", "frame"), times = element("div", "times");

	frame.append(plot(cls, lines), element("span", "top"), element("span", "ground", "0"));
	for (let i = 0; i < 4; i++)
		times.append(element("span"));
	figure.append(element("figcaption", "", title), frame, times);
	return figure;
}

function drawFigure(figure, lines, what, text) {
	const frame = figure.children[1], end = drawPlot(frame.firstChild, lines, what, text);
	const now = (Date.now() - skew) / 1000;

	write(frame.querySelector(".top"), end > 0 ? text(end) : "");
	[15, 10, 5].forEach((minutes, i) => write(figure.lastChild.children[i],
	    moment(now - minutes * 60).slice(-8, -3)));
	write(figure.lastChild.children[3], "now");
}

/* -- samples ------------------------------------------------------------------- */

/* For each queue, by key: its samples.  A sample is an array of its time and these figures. */
const past = new Map();
const DEPTH = 1, ACKED = 2, FAILED = 3, LATENCY = 4;

let skew = 0;		/* milliseconds that this clock is ahead of the daemon's */
let sampled = 0;	/* when the last sample was added; 0: the history must be read */
let drawn = 0;		/* the sample that plots show */

/* Replaces all samples by those of /history. */
function takeHistory(answer) {
	const from = objectOf(answer);
	const times = arrayOf(from.times).map(t => numberOf(t) === null ? NaN : t * 1000 + skew);

	past.clear();
	for (const q of listOf(from.queues)) {
		const figures = ["depth", "acked_rate", "failed_rate", "latency"].map(name => arrayOf(q[name]));
		past.set(textOf(q.key), times.map((t, i) => [t].concat(figures.map(f => numberOf(f[i]))))
		    .filter(s => s[0] > Date.now() - WINDOW));
	}
	sampled = Math.max(0, ...times.filter(t => !isNaN(t)));
}

/* Adds a sample from an answer of /status, if the last one is older than STEP. */
function remember(queues) {
	const now = Date.now();

	if (now - sampled < STEP)
		return;
	sampled = now;
	for (const q of queues) {
		const samples = past.get(q.id) || [];
		samples.push([now, q.depth, q.okRate, q.failRate, q.latency]);
		past.set(q.id, samples);
	}
	for (const [key, samples] of past) {
		while (samples.length > 0 && samples[0][0] < now - WINDOW)
			samples.shift();
		if (samples.length === 0)
			past.delete(key);
	}
}

const column = (key, i) => (past.get(key) || []).map(s => [s[0], s[i]]);

/* The sum over all queues at each time. */
function sums(i) {
	const at = new Map();

	for (const samples of past.values())
		for (const s of samples)
			if (s[i] !== null)
				at.set(s[0], (at.get(s[0]) || 0) + s[i]);
	return [...at].sort((a, b) => a[0] - b[0]);
}

/* -- tables --------------------------------------------------------------------- */

/*
 * A table of rows that have a key.  Columns: label, class, and write(cell, item);
 * value(item) where it can be sorted.  detail(row, item), if there is one, makes what an
 * opened row shows below itself.
 */
class Table {
	constructor(table, columns, sort, detail) {
		this.columns = columns;
		this.body = table.tBodies[0];
		this.rows = new Map();
		this.sort = sort;
		this.detail = detail;
		this.open = new Map();		/* rows below opened ones, by key */
		this.items = [];
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

	/* Sorts by a column: names from A, figures from the largest.  A second click reverses. */
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
			if (this.detail)
				row.addEventListener("click", event => this.clicked(event, key));
			this.rows.set(key, row);
		}
		return row;
	}

	/* Opens or closes a row by a click anywhere in it, unless the click ends a selection. */
	clicked(event, key) {
		const selection = getSelection();

		if (selection.isCollapsed || event.target.closest("button"))
			this.toggle(key);
	}

	toggle(key) {
		const row = this.rows.get(key), below = this.open.get(key);

		if (below) {
			below.remove();
			this.open.delete(key);
		} else {
			const item = this.items.find(q => q.id === key);
			const cell = element("td");
			const made = element("tr", "detail");
			cell.colSpan = this.visible();
			cell.append(this.detail(item));
			made.append(cell);
			made.id = row.querySelector("[aria-controls]").getAttribute("aria-controls");
			this.open.set(key, made);
			row.after(made);
		}
		this.markOpen(key);
	}

	/* The number of columns.  A cell that spans more would add an empty one. */
	visible() {
		return this.heads.filter(th => th.getClientRects().length > 0).length || this.columns.length;
	}

	markOpen(key) {
		const row = this.rows.get(key), button = row.querySelector("[aria-controls]");

		row.classList.toggle("open", this.open.has(key));
		if (button)
			set(button, "aria-expanded", String(this.open.has(key)));
	}

	show(items) {
		const gone = new Set(this.rows.keys());
		let place = this.body.firstElementChild;
		const put = row => {
			if (row === place)
				place = place.nextElementSibling;
			else
				this.body.insertBefore(row, place);
		};

		this.items = items;
		for (const item of this.order(items)) {
			const row = this.row(item.id);
			dress(row, (item.mood || "") + (this.open.has(item.id) ? " open" : ""));
			gone.delete(item.id);
			this.columns.forEach((column, k) => column.write(row.cells[k], item));
			put(row);
			if (this.open.has(item.id)) {
				put(this.open.get(item.id));
				this.open.get(item.id).firstChild.colSpan = this.visible();
			}
		}
		for (const key of gone) {
			this.rows.get(key).remove();
			this.rows.delete(key);
			if (this.open.has(key))
				this.open.get(key).remove();
			this.open.delete(key);
		}
	}
}

/* Writes a number; cls: the class if it is not 0; verb: of rqctl, lists what it counts. */
function figure(cell, q, n, cls, verb) {
	writeText(cell, number(n), n, cls ? "n " + cls : "n");
	set(cell, "title", n ? "rqctl " + verb + " " + q.name : "");
}

let rowNumber = 0;

/* The button opens the row by keyboard, and tells screen readers whether it is open. */
function writeName(cell, q) {
	if (!cell.firstChild) {
		const button = element("button", "open");
		button.type = "button";
		button.setAttribute("aria-expanded", "false");
		button.setAttribute("aria-controls", "queue-" + ++rowNumber);
		cell.append(button, element("small"));
	}
	write(cell.firstChild, q.name);
	write(cell.lastChild, q.kind === "ack" ? "" : q.kind);
}

function writePill(cell, [text, mood]) {
	if (!cell.firstChild)
		cell.append(element("span"));
	write(cell.firstChild, text);
	dress(cell.firstChild, "pill " + mood);
}

/* A name, and what it belongs to in small letters. */
function writeTwo(cell, name, other) {
	if (!cell.firstChild)
		cell.append(element("span"), element("small"));
	write(cell.firstChild, name);
	write(cell.lastChild, other);
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

/* Writes a plot and the end of its scale; draws it again only after a new sample. */
function writePlot(cls, lines, what, points, text) {
	return (cell, q) => {
		if (!cell.firstChild)
			cell.append(element("span", "top"), plot(cls, lines));
		if (cell.dataset.drawn === String(drawn))
			return;
		cell.dataset.drawn = String(drawn);
		const end = drawPlot(cell.lastChild, points(q), what, text);
		write(cell.firstChild, end > 0 ? text(end) : "");
	};
}

/* Writes a figure's text; grey where there is none. */
function writeText(cell, text, any, cls) {
	write(cell, text);
	dress(cell, any ? cls || "n" : "n zero");
}

const MOODS = { bad: 0, warn: 1, ok: 2, idle: 3 };

/* By trouble, then by waiting messages. */
const urgency = q => q.trouble * 1e12 + (q.waiting || 0);

const queueTable = new Table(byId("queues"), [
	{ label: "Queue", cls: "name", write: writeName, value: q => q.name },
	{ label: "State", cls: "state", write: (cell, q) => writePill(cell, [q.state, q.mood]), value: urgency },
	{ label: "Waiting", cls: "n", value: q => q.waiting,
	    write: (cell, q) => figure(cell, q, q.waiting, "strong", "peek") },
	{ label: "Running", cls: "n", write: writeRunning, value: q => q.running },
	{ label: "Held", cls: "n held", value: q => q.held,
	    write: (cell, q) => { figure(cell, q, q.held, "held", "peek --held"); cell.classList.add("held"); } },
	{ label: "Retry", cls: "n", value: q => q.retry,
	    write: (cell, q) => figure(cell, q, q.retry, "", "retry list") },
	{ label: "Delayed", cls: "n", value: q => q.delayed,
	    write: (cell, q) => figure(cell, q, q.delayed, "", "delayed list") },
	{ label: "Dead", cls: "n", value: q => q.dead,
	    write: (cell, q) => figure(cell, q, q.dead, "warn", "dead list") },
	{ label: "Done/s", cls: "n", value: q => q.okRate,
	    write: (cell, q) => writeText(cell, rate(q.okRate), q.okRate) },
	{ label: "Failed/s", cls: "n", value: q => q.failRate,
	    write: (cell, q) => writeText(cell, rate(q.failRate), q.failRate, "n bad") },
	{ label: "Latency", cls: "n", value: q => q.latency,
	    write: (cell, q) => writeText(cell, age(q.latency), q.latency) },
	{ label: "Oldest run", cls: "n", value: q => q.oldest,
	    write: (cell, q) => writeText(cell, age(q.oldest), q.oldest !== null) },
	{ label: "Backlog", cls: "plots",
	    write: writePlot("", ["depth"], "Backlog", q => [column(q.id, DEPTH)], number) },
	{ label: "Done, failed/s", cls: "plots",
	    write: writePlot("rate", ["done", "fail"], "Rates", q => [column(q.id, ACKED), column(q.id, FAILED)], rate) },
	{ label: "Latency", cls: "plots late",
	    write: writePlot("late", ["late"], "Latency", q => [column(q.id, LATENCY)], span) },
], { column: 1, down: true }, openQueue);

/* -- an open row ------------------------------------------------------------------ */

const details = new Map();	/* the newest answer of /queue, by key */
let hides = false;		/* the daemon hides ids, errors and progress from this page */

function copyButton(code) {
	const button = element("button", "copy", "Copy");

	button.type = "button";
	button.addEventListener("click", async () => {
		write(button, await copy(code) ? "Copied" : "Press Ctrl+C");
		setTimeout(() => write(button, "Copy"), 2000);
	});
	return button;
}

/* Without TLS, browsers give scripts no clipboard: then the selection is copied. */
async function copy(code) {
	try {
		await navigator.clipboard.writeText(code.textContent);
		return true;
	} catch (e) {
		getSelection().selectAllChildren(code);
		return document.execCommand("copy");
	}
}

function part(title, cls, inner) {
	const box = element("section", "part " + cls);

	box.append(element("h3", "", title), inner);
	return box;
}

function openQueue(q) {
	const box = element("div", "queue");
	const plots = element("div", "figures");
	const last = element("div"), dead = element("div", "dead");

	plots.append(figurePlot("Backlog: waiting, due and held", "", ["depth"]), figurePlot("Latency", "late", ["late"]),
	    figurePlot("Done and failed per second", "rate", ["done", "fail"]));
	last.append(element("p", "about"), element("pre"));
	dead.append(part("", "reasons", element("ul")), part("Last error", "error", last));
	box.append(element("p", "cause"), element("p", "cause why"), plots, part("Commands", "commands", element("ul")),
	    dead, part("Daemons", "servers", element("ul")), part("Schedules", "ticks", element("ul")));
	drawQueue(box, q, true);
	askQueue(q.id);
	return box;
}

function drawCommands(box, commands) {
	box.hidden = commands.length === 0;
	fill(box.lastChild, commands, () => {
		const line = element("li"), code = element("code");
		line.append(code, copyButton(code));
		return line;
	}, (line, command) => write(line.firstChild, command));
}

/* A list of rows: the first cell, and the rest. */
function drawList(box, lines) {
	box.hidden = lines.length === 0;
	fill(box.lastChild, lines, () => {
		const line = element("li");
		line.append(element("b"), element("span"));
		return line;
	}, (line, [first, rest]) => { write(line.firstChild, first); write(line.lastChild, rest); });
}

/* The reasons of dead letters, as rqd-log(7) explains them. */
const REASONS = {
	attempts: "the last attempt failed", status: "the exit status means dead",
	answer: "the handler said dead", crashed: "the lease expired too often",
	too_large: "larger than message_max", unframeable: "a newline or NUL in the message",
	cancelled: "by rqctl cancel --dead", buried: "by rqctl bury",
};

/* How many of the newest dead letters have each reason, the most frequent first. */
function drawReasons(box, q, letters) {
	const total = numberOf(letters.total), looked = numberOf(letters.looked);
	const reasons = Object.entries(objectOf(letters.reasons)).filter(r => numberOf(r[1]) > 0)
	    .sort((a, b) => b[1] - a[1]);

	write(box.firstChild, "Dead letters by reason" +
	    (looked < total ? ", the newest " + number(looked) + " of " + number(total) : ""));
	drawList(box, reasons.map(([reason, n]) => [number(n),
	    reason + (Object.hasOwn(REASONS, reason) ? ": " + REASONS[reason] : "")]));
	reasons.forEach(([reason], i) => set(box.lastChild.children[i], "title",
	    Object.hasOwn(REASONS, reason) ? "rqctl dead list --reason " + reason + " " + q.name : ""));
}

/* The newest dead letter; hidden: this page may not show it. */
function drawLast(box, letter, hidden) {
	const id = textOf(letter.id) || textOf(letter.id_base64), reason = textOf(letter.reason);

	box.hidden = Object.keys(letter).length === 0 && !hidden;
	write(box.lastChild.firstChild, hidden ? HIDDEN : id + " died " + when(numberOf(letter.died)) +
	    (textOf(letter.host) ? " on " + textOf(letter.host) : "") + ": " +
	    (Object.hasOwn(REASONS, reason) ? REASONS[reason] : reason) +
	    (reason === "answer" ? "" : ", status " + textOf(letter.status)) +
	    ", attempt " + textOf(letter.attempts));
	write(box.lastChild.lastChild, [textOf(letter.answer) && "it said: " + textOf(letter.answer),
	    (textOf(letter.error) || textOf(letter.error_base64)).trim()].filter(t => t).join("\n"));
	box.lastChild.lastChild.hidden = box.lastChild.lastChild.textContent === "";
}

const serverLine = (s, leases) => [textOf(s.instance), textOf(s.version) + ", " + number(numberOf(s.running)) + "/" +
    number(numberOf(s.concurrency)) + " running, " + textOf(s.state) +
    (textOf(s.reason) ? ": " + textOf(s.reason) : "") +
    (numberOf(s.since) !== null ? " since " + moment(s.since) : "") +
    (leases ? ", lease " + age(numberOf(s.lease)) : "") + ", configuration " + textOf(s.config).slice(0, 8) +
    (textOf(s.cause) ? ": " + textOf(s.cause) : "")];

function scheduleLine(s) {
	return [s.name, s.rule + "; last " + when(s.last) + "; next " + when(s.next) +
	    (s.missed !== null ? "; missed " + moment(s.missed) : "")];
}

function drawQueue(box, q, plots) {
	const d = details.get(q.id) || {}, letters = objectOf(d.letters);
	const [cause, why, figures, commands, dead, servers, ticks] = box.children;
	const [reasons, last] = dead.children;

	write(cause, q.name + ": " + q.state + ". " + textOf(d.hint));
	dress(cause, "cause " + q.mood);
	write(why, textOf(d.cause) || (hides && q.state.startsWith("suspended") ? HIDDEN : ""));
	why.hidden = why.textContent === "";
	if (plots) {
		drawFigure(figures.children[0], [column(q.id, DEPTH)], "Backlog", number);
		drawFigure(figures.children[1], [column(q.id, LATENCY)], "Latency", span);
		drawFigure(figures.children[2], [column(q.id, ACKED), column(q.id, FAILED)], "Rates", rate);
	}
	drawCommands(commands, arrayOf(d.commands).map(textOf));
	drawReasons(reasons, q, letters);
	drawLast(last, objectOf(letters.newest), hides && numberOf(letters.total) > 0);
	dead.hidden = reasons.hidden && last.hidden;
	const serving = listOf(d.servers), leases = new Set(serving.map(s => numberOf(s.lease))).size > 1;

	drawList(servers, serving.map(s => serverLine(s, leases)));
	drawList(ticks, scheduled.filter(s => s.key === q.id).map(scheduleLine));
}

function drawOpen(plots) {
	for (const [key, row] of queueTable.open) {
		const q = queueTable.items.find(item => item.id === key);
		if (q)
			drawQueue(row.firstChild.firstChild, q, plots);
	}
}

/* Keys of the queues with a request for /queue that is not answered: one each at most. */
const inquiries = new Set();

async function askQueue(key) {
	if (inquiries.has(key))
		return;
	inquiries.add(key);
	try {
		const answer = await fetch("queue?key=" + encodeURIComponent(key), { cache: "no-store",
		    signal: AbortSignal.timeout(PATIENCE) });
		if (answer.ok)
			details.set(key, objectOf(await answer.json()));
		drawOpen(false);
	} catch (e) {
		/* The next poll requests /queue again; if /status fails too, the page shows that. */
	} finally {
		inquiries.delete(key);
	}
}

function askOpen() {
	for (const key of details.keys())
		if (!queueTable.open.has(key))
			details.delete(key);
	for (const key of queueTable.open.keys())
		askQueue(key);
}

/* -- other tables ------------------------------------------------------------------ */

/* The schedules of this daemon's configuration. */
let scheduled = [];

const scheduleTable = new Table(byId("schedules"), [
	{ label: "Schedule", cls: "name", value: s => s.name, write: (cell, s) => writeTwo(cell, s.name, s.queue) },
	{ label: "State", cls: "state", value: s => s.missed === null ? 0 : 1,
	    write: (cell, s) => writePill(cell, s.missed !== null ? ["missed " + moment(s.missed), "warn"] :
		s.last === null ? ["has not run yet", "idle"] : ["ok", "ok"]) },
	{ label: "Rule", cls: "mono", write: (cell, s) => write(cell, s.rule) },
	{ label: "Last", cls: "n", value: s => s.last, write: (cell, s) => write(cell, when(s.last)) },
	{ label: "Next", cls: "n", value: s => s.next, write: (cell, s) => write(cell, when(s.next)) },
], { column: 1, down: true });

/* The progress that handlers have reported, for the messages that have run longest. */
const progressTable = new Table(byId("progress"), [
	{ label: "Message", cls: "name", value: p => p.queue + " " + p.message,
	    write: (cell, p) => writeTwo(cell, p.message, p.queue) },
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
		dress(cell.childNodes[i], "pill " + (states.length === 0 ? "ok" : states[i] ? states[i][2] : "idle"));
	});
}

const daemonTable = new Table(byId("daemons"), [
	{ label: "Daemon", cls: "name", value: d => d.name + " " + d.instance,
	    write: (cell, d) => writeTwo(cell, d.name || d.instance, d.here ? d.instance + ", this one" : d.instance) },
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
	["Running", "running"], ["Held", "held"], ["Retry", "retry"], ["Delayed", "delayed"],
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
const depthBox = sumBox("Backlog", "wide");
const rateBox = sumBox("Done/s", "wide");

set(depthBox, "title", "Waiting, due and held messages, and their last 15 minutes");
depthBox.append(plot("", ["depth"]), element("span", "top"));
rateBox.append(plot("rate", ["done", "fail"]), element("span", "top"));

function showSums(queues, plots) {
	const sum = of => queues.reduce((n, q) => n + (of(q) || 0), 0);
	const rates = queues.some(q => q.okRate !== null);
	const failed = sum(q => q.failRate);

	SUMS.forEach(([, member], i) => {
		const n = sum(q => q[member]);
		write(sumBoxes[i].querySelector("b"), number(n));
		dress(sumBoxes[i], "sum" + (member === "dead" && n > 0 ? " warn" : "") + (n > 0 ? "" : " none"));
	});
	write(depthBox.querySelector("b"), number(sum(q => q.depth)));
	write(rateBox.querySelector("b"), rates ? rate(sum(q => q.okRate)) : "\u2013");
	write(rateBox.querySelector("p span"), failed > 0 ? "Done/s, " + rate(failed) + " failed" : "Done/s");
	if (!plots)
		return;
	const end = [drawPlot(depthBox.children[1], [sums(DEPTH)], "Backlog of all queues", number),
	    drawPlot(rateBox.children[1], [sums(ACKED), sums(FAILED)], "Rates of all queues", rate)];
	write(depthBox.lastChild, end[0] > 0 ? number(end[0]) : "");
	write(rateBox.lastChild, end[1] > 0 ? rate(end[1]) : "");
}

/* -- the page -------------------------------------------------------------------- */

let shown = null;	/* the last answer that had queues, as it is shown */
let shownAt = 0;	/* when that came */
let version = null;	/* of the daemon that this page came from */

const FIGURES = ["waiting", "running", "held", "retry", "due", "delayed", "dead", "concurrency", "oldest",
    "latency"];

function queueItem(from) {
	const q = { id: textOf(from.key), name: textOf(from.name), kind: textOf(from.kind), state: textOf(from.state) };

	for (const name of FIGURES)
		q[name] = numberOf(from[name]);
	q.mood = Object.hasOwn(MOODS, textOf(from.mood)) ? from.mood : "warn";
	q.trouble = numberOf(from.trouble) || 0;
	q.differs = textOf(from.differs);
	/* As depth_backlog(): what can be handled now, or waits for others of its group. */
	q.depth = q.waiting === null ? null : q.waiting + (q.due || 0) + (q.held || 0);
	q.okRate = numberOf(from.acked_rate);
	q.failRate = numberOf(from.failed_rate);
	return q;
}

function scheduleItem(from) {
	const s = { id: textOf(from.name), name: textOf(from.name), queue: textOf(from.queue), key: textOf(from.key) };
	const every = numberOf(from.every);

	for (const name of ["last", "next", "missed"])
		s[name] = numberOf(from[name]);
	s.rule = every !== null ? "every " + span(every) :
	    textOf(from.cron) + (textOf(from.timezone) ? " " + textOf(from.timezone) : "");
	return s;
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
	const moods = objectOf(from.moods);
	d.states = Object.entries(objectOf(from.states)).map(([name, state]) => [name, textOf(state),
	    Object.hasOwn(MOODS, textOf(moods[name])) ? moods[name] : "warn"]);
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
	write(byId("empty"), shown.length > 0 ? "No queue's name, state or kind has this text." :
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

/* Problems of Redis or of the fleet, in the words of rqctl check. */
function showProblems(problems) {
	byId("problems").hidden = problems.length === 0;
	fill(byId("problems"), problems, () => element("li"), (line, p) => {
		write(line, textOf(p.text));
		dress(line, "banner" + (p.level === "error" ? "" : " warn"));
	});
}

/* Drops items with equal ids, which would share a row. */
const eachOnce = items => [...new Map(items.map(item => [item.id, item])).values()];

function showTable(name, table, items) {
	const section = byId(name + "-section");

	if (section)
		section.hidden = items.length === 0;
	table.show(items);
	write(byId(name + "-count"), String(items.length));
}

function showConfigs(fleet) {
	const configs = new Set(fleet.map(d => d.config).filter(c => c));
	const differ = shown.filter(q => q.differs), some = differ.slice(0, DIFFER_MAX);

	byId("configs").hidden = configs.size < 2;
	write(byId("configs"), "These daemons run " + configs.size + " different configurations" +
	    some.map((q, i) => (i === 0 ? "; " : ", ") + q.name + ": " + q.differs).join("") +
	    (differ.length > some.length ? ", and " + (differ.length - some.length) + " more queues" : "") +
	    ". If they should not: compare what rqd -T prints on each host.");
}

function showQueues(status) {
	const time = Date.parse(status.time) / 1000;
	const fleet = eachOnce(listOf(status.fleet).map(d => daemonItem(d, status.daemon.instance, time)));

	shown = eachOnce(listOf(status.queues).map(queueItem));
	shownAt = Date.now();
	if (sampled > 0)
		remember(shown);
	const plots = drawn !== sampled;

	drawn = sampled;
	byId("queues").classList.toggle("no-held", !shown.some(q => q.held));
	listQueues();
	showSums(shown, plots);
	showTable("daemons", daemonTable, fleet);
	showConfigs(fleet);
	showTable("progress", progressTable, eachOnce(listOf(status.progress).map(progressItem)));
	drawOpen(plots);
}

/* The members that are shown; each has its type. */
function daemonOf(from) {
	const d = { redis: {} };
	const redis = objectOf(from.redis);

	for (const name of ["name", "version", "instance", "state"])
		d[name] = textOf(from[name]);
	for (const name of ["server", "version", "error"])
		d.redis[name] = textOf(redis[name]);
	d.redis.up = redis.up === true;
	return d;
}

function showRedis(status, redis) {
	document.body.classList.toggle("stale", !status.queues);
	if (!redis.up) {
		showLink("bad", "Redis is down");
		showBanner("", "Redis does not answer: " + (redis.error || "no reason is known") +
		    ". Messages and results wait; the daemon tries again by itself." + staleText());
	} else if (!status.queues) {
		showLink("warn", "Redis is slow");
		showBanner("warn", "Redis did not answer in time." + staleText());
	} else {
		showLink("ok", "live");
		showBanner("warn", status.daemon.state === "running" ? "" :
		    "This daemon is " + status.daemon.state + ".");
	}
}

/* A sentence that says how old the shown figures are. */
function staleText() {
	const s = Math.floor((Date.now() - shownAt) / 1000);

	return shownAt === 0 ? "" : " The figures below are " + (s < 60 ? s + "s" : age(s)) + " old.";
}

function show(answer) {
	const from = objectOf(answer);
	const status = { time: textOf(from.time), daemon: daemonOf(objectOf(from.daemon)),
	    queues: Array.isArray(from.queues) ? from.queues : null,
	    fleet: from.fleet, progress: from.progress };
	const d = status.daemon, redis = d.redis, time = Date.parse(status.time);

	/* A daemon of another version serves another page. */
	if (version !== null && version !== d.version)
		location.reload();
	version = d.version;
	hides = from.details === false;
	byId("hidden").hidden = !hides;
	write(byId("hidden"), HIDDEN);
	if (!isNaN(time) && Math.abs(Date.now() - time - skew) > 5000)
		skew = Date.now() - time;
	scheduled = eachOnce(listOf(from.schedules).map(scheduleItem));
	showTable("schedules", scheduleTable, scheduled);
	if (status.queues)
		showQueues(status);
	const problems = status.queues ? shown.filter(q => q.mood === "bad").length : 0;

	write(byId("name"), d.name);
	write(byId("where"), "Redis " + redis.server + (redis.version ? ", version " + redis.version : ""));
	write(byId("zone"), "times in " + (Intl.DateTimeFormat().resolvedOptions().timeZone || "local time"));
	write(byId("foot"), "rqd " + d.version + ", " + d.instance + ", " + moment(time / 1000 - skew / 1000));
	showTitle(redis.up ? problems : "!", d.name);
	showRedis(status, redis);
	showProblems(listOf(from.problems));
}

let lost = 0;		/* when the daemon stopped answering; 0: it answers */
let wait = POLL;

function showLost() {
	const since = lost === 0 ? "" : " since " + new Date(lost).toLocaleTimeString();

	document.body.classList.add("stale");
	showLink("bad", "disconnected");
	showTitle("!", "");
	showBanner("", "The daemon does not answer" + since + "." + staleText() + " Asking again\u2026");
}

/* -- asking ---------------------------------------------------------------------- */

let timer = 0;
let asking = null;	/* AbortController of the current request; null: none */

async function fetchJson(path, signal) {
	const answer = await fetch(path, { cache: "no-store", signal: signal });

	if (!answer.ok)
		throw new Error(answer.status);
	return answer.json();
}

/* Requests /status before /history, because it gives the skew for the times of samples. */
async function askAll(signal) {
	const status = await fetchJson("status", signal);
	const away = lost > 0 || Date.now() - sampled > 4 * STEP;

	lost = 0;
	wait = POLL;
	show(status);
	askOpen();
	if (!away)
		return;
	takeHistory(await fetchJson("history", signal));
	show(status);
}

async function ask() {
	const control = new AbortController();
	const late = setTimeout(() => control.abort(), PATIENCE);

	asking = control;
	try {
		await askAll(control.signal);
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
byId("find").addEventListener("input", () => { if (shown) listQueues(); });
/* While the daemon does not answer, updates the age of the shown figures. */
setInterval(() => { if (lost > 0 && !document.hidden) showLost(); }, 1000);

ask();

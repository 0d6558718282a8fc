#!/usr/bin/node
/*
 * Books amounts into a file: a persistent handler for Node.js.  A message is a JSON
 * object with an account and an amount: {"id": 7, "account": "alice", "amount": 12.5}.
 *
 *	queue "ledger" {
 *	    command  = {"/usr/local/bin/ledger.js"}
 *	    user     = "ledger"
 *	    env      = {"LEDGER=/var/lib/ledger/book"}
 *	    mode     = "persistent"
 *	    pipeline = 64
 *	}
 *
 * All messages of the pipeline are handled at the same time, and each is answered
 * when it is done: one process can wait for 64 replies of a web service.
 *
 * Standard output is for answers only: console.error() for all else.
 */
'use strict';

const fs = require('fs/promises');

/* This message can never succeed. */
class Never extends Error {}

async function book(ledger, id, message) {
	let order;
	try {
		order = JSON.parse(message.toString());
	} catch (e) {
		throw new Never(e.message);
	}
	const amount = order?.amount;
	if (typeof order?.account !== 'string' || typeof amount !== 'number')
		throw new Never('not an order');
	/* One write for one line: lines of several messages do not mix. */
	await ledger.appendFile(`${id} ${order.account} ${amount.toFixed(2)}\n`);
}

/* A reason is one line.  Writing to a pipe is synchronous here: nothing is buffered. */
function answer(number, verdict, reason = '') {
	const text = String(reason).replace(/\s+/g, ' ').slice(0, 500);
	process.stdout.write(`${number} ${verdict} ${text}`.trimEnd() + '\n');
}

async function handle(ledger, number, id, message) {
	try {
		await book(ledger, id, message);
		answer(number, 'ok');
	} catch (e) {
		answer(number, e instanceof Never ? 'dead' : 'retry -', e.message);
	}
}

/* The first message in these bytes, and the rest; null: the message is incomplete. */
function split(bytes) {
	const newline = bytes.indexOf(10);
	if (newline === -1)
		return null;
	const [number, , length, ...id] = bytes.toString('utf8', 0, newline).split(' ');
	const end = newline + 1 + Number(length);
	if (bytes.length <= end)
		return null;
	return { number, id: id.join(' '), message: bytes.subarray(newline + 1, end),
	    rest: bytes.subarray(end + 1) };
}

async function main() {
	/* Do slow things (connections, modules) here, once. */
	const ledger = await fs.open(process.env.LEDGER, 'a');
	let bytes = Buffer.alloc(0), next;

	for await (const chunk of process.stdin) {
		bytes = bytes.length > 0 ? Buffer.concat([bytes, chunk]) : chunk;
		while ((next = split(bytes)) !== null) {
			bytes = next.rest;
			handle(ledger, next.number, next.id, next.message);
		}
	}
}

/*
 * An exception that is not caught ends the process: rqd returns its messages to the
 * queue, and starts another process.
 */
main();

#!/usr/bin/php
<?php
/*
 * Books amounts into a file: a persistent handler in PHP.  A message is a JSON object
 * with an account and an amount: {"id": 7, "account": "alice", "amount": 12.5}.
 *
 *	queue "ledger" {
 *	    command      = {"/usr/local/bin/ledger.php"}
 *	    user         = "ledger"
 *	    env          = {"LEDGER=/var/lib/ledger/book"}
 *	    mode         = "persistent"
 *	    concurrency  = 2
 *	    pipeline     = 16
 *	    max_messages = 10000
 *	}
 *
 * Standard output is for answers only, so nothing may be echoed, and PHP's own
 * messages go to standard error.
 */

declare(strict_types=1);
ini_set('display_errors', 'stderr');
ini_set('memory_limit', '128M');

/* This message can never succeed. */
class Hopeless extends Exception {}

/* Warnings are failures as well: if fopen() fails, a retry may help. */
set_error_handler(function (int $severity, string $text): bool {
	throw new RuntimeException($text);
});

function book($ledger, string $id, string $message): void
{
	$order = json_decode($message, true);
	if (!is_array($order) || !isset($order['account'], $order['amount'])
	    || !is_numeric($order['amount'])) {
		throw new Hopeless('not an order');
	}
	/* One write for one line: lines of several processes do not mix. */
	$line = sprintf("%s %s %.2f\n", $id, $order['account'], $order['amount']);
	if (fwrite($ledger, $line) !== strlen($line)) {
		throw new RuntimeException('the ledger is full');
	}
}

/* A reason is one line.  STDOUT is not buffered. */
function answer(string $number, string $verdict, string $reason = ''): void
{
	$reason = substr(preg_replace('/\s+/', ' ', $reason), 0, 500);
	fwrite(STDOUT, rtrim("$number $verdict $reason") . "\n");
}

/* Do slow things (connections, autoloading) here, once. */
$ledger = fopen(getenv('LEDGER'), 'a');

while (($header = fgets(STDIN)) !== false) {
	[$number, $attempt, $length, $id] = explode(' ', rtrim($header, "\n"), 4);
	/* fread() may return less than it is asked for; the newline follows. */
	$message = $length > 0 ? stream_get_contents(STDIN, (int)$length) : '';
	fgetc(STDIN);
	try {
		book($ledger, $id, $message);
		answer($number, 'ok');
	} catch (Hopeless $e) {
		answer($number, 'dead', $e->getMessage());
	} catch (Throwable $e) {
		answer($number, 'retry -', $e->getMessage());
	}
}

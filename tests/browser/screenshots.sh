#!/bin/sh
# Makes the pictures of the page in doc/: tests/browser/screenshots.sh [MINUTES [DIRECTORY]]
#
# It starts a Redis, two daemons and producers of its own.  They work for MINUTES, so that the
# plots have data; plots show 15 minutes.  Then it opens the page in a browser.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"
# shellcheck source=tests/browser/lib.sh
. "$SRCDIR/tests/browser/lib.sh"
# shellcheck source=tests/browser/fleet.sh
. "$SRCDIR/tests/browser/fleet.sh"

MINUTES=${1:-15} DIRECTORY=${2:-$SRCDIR/doc}

picture() {	# NAME
	screenshot "$T/$1.png"
	python3 "$SRCDIR/tests/browser/palette.py" "$T/$1.png"
	_size=$(wc -c <"$T/$1.png")
	mv "$T/$1.png" "$DIRECTORY/$1.png"
	ok "[ $_size -lt 100000 ]" "$1.png: $_size bytes, less than 100 kB"
}

open_row() {	# QUEUE
	js "[...document.querySelectorAll('#queues tbody tr')].find(r => r.cells[0].firstChild.textContent === '$1').click()" >/dev/null
}

redis_start
fleet_start
# It ends while messages are held.
MORE_KEYS='shippingGROUP shippingHELD shippingORDER'
# One customer orders much at once, so that messages are held.
ship() {	# N
	for _i in $(seq "$1"); do r lpush shipping "{\"customer\":$((_i % 2 + 1))}" >/dev/null; done
}
# Invoices die for four reasons.
die() {
	for _c in 7 7 3 3 3 5 5 5 5 5; do r lpush invoices "{\"customer\":$_c}" >/dev/null; done
	r lpush invoices "$(head -c 5000 /dev/zero | tr '\0' x)" >/dev/null
}

end=$(($(date +%s) + MINUTES * 60))
while [ "$(date +%s)" -lt "$end" ]; do
	# The rate changes every 20 seconds, so that plots are no straight lines.
	fleet_push $((6 + $(date +%s) / 20 % 9 * 4))
	case $(($(date +%s) % 240)) in
	[0-3]) die; ship 60 ;;
	*[05]) ship 1 ;;
	esac
	sleep 1
done

ship 40

browser_start
size 1280 900
go "http://$WHERE/"
js_wait 20 'document.querySelectorAll("#queues tbody tr").length === 8' 'the page is there'
js_wait 20 '[...document.querySelectorAll("#queues td")].filter(c => c.dataset.label === "Done/s" && /[0-9]/.test(c.textContent)).length > 5' 'with its rates'
size 1280 "$(js 'document.documentElement.scrollHeight')"
picture page
scheme dark
picture page-dark
scheme light
size 1280 620
open_row invoices
js_wait 20 'document.querySelectorAll(".commands li").length > 1' 'a row is open'
js 'document.querySelector("tr.detail").previousElementSibling.scrollIntoView()' >/dev/null
picture page-queue
open_row invoices
size 375 812 1
js 'scrollTo(0, 0)' >/dev/null
picture page-phone
browser_stop

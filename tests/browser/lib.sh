# A real browser for tests, driven by chromedriver over HTTP: source it after tests/lib.sh.
#
#	browser_start
#	go http://127.0.0.1:17379/
#	js_wait 10 'document.title.startsWith("rqd")' 'the title'
#	is "$(js 'document.title')" 'rqd on web1' 'its text'
#	size 390 844; screenshot "$T/phone.png"
#
# It is headless, keeps its profile in $T, and ends with the test.
#
# shellcheck shell=sh disable=SC2154,SC2016

command -v chromedriver >/dev/null && command -v chromium >/dev/null ||
	skip_all 'no chromium and chromedriver'
command -v curl >/dev/null || skip_all 'no curl'

DRIVER='' SESSION=''

# Prints a string of the answer's JSON, as it is between the quotes.
json_string() {	# MEMBER
	sed -n "s/.*\"$1\":\"\(\([^\"\\\\]\|\\\\.\)*\)\".*/\1/p"
}

# Prints text as a JSON string, with its quotes.
json_quote() {	# TEXT
	printf '%s\n' "$1" | sed ':a; $!N; $!ba; s/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g; s/\n/ /g; s/.*/"&"/'
}

driver() {	# METHOD PATH [BODY]: POST without a body sends {}
	if [ "$1" = GET ]; then
		curl -s -m 60 "$DRIVER$2"
	else
		curl -s -m 600 -X "$1" -H 'Content-Type: application/json' -d "${3-{\}}" "$DRIVER$2"
	fi
}

# Starts the browser.  EXTRA: more options of Chromium, each as a comma and a JSON string.
browser_start() {	# [EXTRA]
	mkdir -p "$T/profile"
	HOME=$T chromedriver --port=0 --log-path="$T/chromedriver.txt" >"$T/driver.out" 2>&1 &
	DRIVER_PID=$!
	OTHER_PIDS="$OTHER_PIDS $DRIVER_PID"
	wait_for 30 'grep -q "successfully on port" "$T/driver.out"' || fail 'chromedriver starts'
	DRIVER=http://127.0.0.1:$(sed -n 's/.*successfully on port \([0-9]*\).*/\1/p' "$T/driver.out")
	SESSION=/session/$(driver POST /session '{"capabilities":{"alwaysMatch":{"timeouts":{"script":500000},"goog:loggingPrefs":{"browser":"ALL"},
	    "goog:chromeOptions":{"binary":"'"$(command -v chromium)"'","args":["--headless","--no-sandbox","--disable-gpu",
	    "--disable-dev-shm-usage","--disable-quic","--no-first-run","--disable-background-networking",
	    "--disable-component-update","--disable-sync","--hide-scrollbars","--user-data-dir='"$T"'/profile"'"$1"']}}}}' |
	    tee "$T/session.json" | json_string sessionId)
	[ "$SESSION" != /session/ ] || fail "a browser starts: $(cut -c 1-300 "$T/session.json")"
}

browser_stop() {
	[ -n "$SESSION" ] || return 0
	driver DELETE "$SESSION" >/dev/null
	kill "$DRIVER_PID" 2>/dev/null
	wait "$DRIVER_PID" 2>/dev/null
	SESSION=''
}

go() { driver POST "$SESSION/url" "{\"url\":\"$1\"}" >/dev/null; }	# URL

# Prints the value of an expression, as text.
js() {	# EXPRESSION
	driver POST "$SESSION/execute/sync" \
	    "{\"script\":$(json_quote "return String($1)"),\"args\":[]}" | json_string value |
	    sed 's/\\"/"/g; s/\\n/ /g; s/\\u003C/</g; s/\\\\/\\/g'
}

# Waits until an expression is true, SECONDS at most.  The loop runs in the browser, because
# each request from the shell would take a hundred times as long.
js_until() {	# SECONDS EXPRESSION
	_was=$(driver POST "$SESSION/execute/async" "{\"script\":$(json_quote "
	    const done = arguments[0], end = performance.now() + 1000 * $(($1 * SLOW));
	    (function look() {
		let was;
		try { was = String($2); } catch (e) { was = String(e); }
		if (was === 'true' || performance.now() > end) done(was); else setTimeout(look, 50);
	    })()"),\"args\":[]}" | json_string value)
	[ "$_was" = true ] && return
	note "waited $(($1 * SLOW)) s in vain for: $2"
	note "it is: $_was"
	return 1
}

js_wait() {	# SECONDS EXPRESSION DESCRIPTION
	js_until "$1" "$2"
	report $? "$3"
}

# Clicks with the mouse in the middle of an element.  A browser allows more after that than
# after click() in a script, such as to write to the clipboard.
click() {	# EXPRESSION
	_at=$(js "(e => { e.scrollIntoView({ block: 'center' }); const r = e.getBoundingClientRect(); return Math.round(r.x + r.width / 2) + ' ' + Math.round(r.y + r.height / 2); })($1)")
	driver POST "$SESSION/actions" '{"actions":[{"type":"pointer","id":"m","parameters":{"pointerType":"mouse"},"actions":[
	    {"type":"pointerMove","duration":0,"x":'"${_at% *}"',"y":'"${_at#* }"'},{"type":"pointerDown","button":0},
	    {"type":"pointerUp","button":0}]}]}' >/dev/null
}

# Sets the width and height of the visible page, such as those of a phone.
size() {	# WIDTH HEIGHT
	driver POST "$SESSION/goog/cdp/execute" '{"cmd":"Emulation.setDeviceMetricsOverride","params":
	    {"width":'"$1"',"height":'"$2"',"deviceScaleFactor":'"${3:-1}"',"mobile":false}}' >/dev/null
}

scheme() {	# dark or light
	driver POST "$SESSION/goog/cdp/execute" '{"cmd":"Emulation.setEmulatedMedia","params":
	    {"features":[{"name":"prefers-color-scheme","value":"'"$1"'"}]}}' >/dev/null
}

screenshot() {	# FILE
	driver GET "$SESSION/screenshot" | json_string value | base64 -d >"$1"
}

# Prints the errors that the browser has logged since the last call, such as those of scripts
# and what the Content-Security-Policy forbids.
complaints() {
	driver POST "$SESSION/se/log" '{"type":"browser"}' | grep -oE '"message":"([^"\\]|\\.)*"' |
	    grep -v '"chrome://' | grep -v 'Failed to load resource: net::ERR_\|net::ERR_CONNECTION\|status\( \|.*\)503'
}

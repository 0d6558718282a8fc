#!/bin/sh
# The example handlers in etc/examples, run without rqd: what each does, and its exit
# status.  Programs that would need a network are replaced by scripts in $T/bin.

# shellcheck source=tests/lib.sh
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

EXAMPLES=$SRCDIR/etc/examples
mkdir "$T/bin" "$T/none"

# Makes a script that runs instead of a real program; $T is set in it.
stand_in() {	# NAME, text on stdin
	handler "bin/$1"
}

# Runs an example as rqd would: the message is a file at standard input, and the
# environment has only these variables.  STATUS is its status, $T/err its stderr.
example() {	# NAME MESSAGE [VARIABLE=VALUE...]
	_script=$EXAMPLES/$1
	printf %s "$2" >"$T/message"
	shift 2
	env -i PATH="$T/bin:$PATH" RQD_ID=7 RQD_ATTEMPT=1 RQD_QUEUE=q \
	    RQD_MAX_ATTEMPTS=25 "$@" /bin/sh "$_script" <"$T/message" >"$T/out" 2>"$T/err"
	STATUS=$?
}

# Checks the status; if it is wrong, notes the example's stderr.
status() {	# WANTED DESCRIPTION
	is "$STATUS" "$1" "$2" || note "$(cat "$T/err")"
}

# -- mail ----------------------------------------------------------------------

if command -v jq >/dev/null; then
	stand_in sendmail <<'H'
cat >"$T/mail"
exit "$(cat "$T/sendmail-status")"
H
	echo 0 >"$T/sendmail-status"
	mail() { example mail.sh "$1" SENDMAIL="$T/bin/sendmail"; }

	mail '{"id":"m","to":"a@example.org","subject":"It'\''s $(date)","text":"one\n`two`"}'
	status 0 'mail: sent'
	is "$(sed -n 1,2p "$T/mail")" "To: a@example.org
Subject: It's \$(date)" 'mail: headers, nothing in them expanded'
	is "$(sed -n '/^$/,$p' "$T/mail")" '
one
`two`' 'mail: the text'
	mail '{"to":"a@example.org","subject":"Gr\u00fc\u00dfe","text":""}'
	like "$(cat "$T/mail")" '^Subject: =\?UTF-8\?B\?R3LDvMOfZQ==\?=$' 'mail: a subject that is not ASCII is encoded'

	rm -f "$T/mail"
	mail '{"to":"a@example.org\nBcc: b@example.org","subject":"s","text":""}'
	status 65 'mail: a newline in an address makes a dead letter (65)'
	mail '{"to":"a@example.org","subject":"s"}'
	status 65 'mail: so does a missing field'
	mail 'no JSON'
	status 65 'mail: so does a message that is not JSON'
	mail ''
	status 65 'mail: so does an empty message'
	ok '[ ! -e "$T/mail" ]' 'mail: none of these messages was sent'

	echo 75 >"$T/sendmail-status"
	mail '{"to":"a@example.org","subject":"s","text":""}'
	status 75 'mail: status 75 of sendmail is passed on, so rqd retries'
	echo 67 >"$T/sendmail-status"
	mail '{"to":"a@example.org","subject":"s","text":""}'
	status 65 'mail: status 67 of sendmail, no such user, makes a dead letter'
	example mail.sh '{"to":"a@example.org","subject":"s","text":""}' SENDMAIL="$T/none/sendmail"
	status 127 'mail: without sendmail the status is 127'
else
	note 'no jq: mail.sh and postgres.sh are not run'
fi

# -- webhook -------------------------------------------------------------------

stand_in curl <<'H'
printf '%s\n' "$@" >"$T/arguments"
cat >"$T/posted"
cat "$T/code"
exit "$(cat "$T/curl-status")"
H
hook() {	# HTTP-STATUS CURL-STATUS
	echo "$1" >"$T/code"
	echo "$2" >"$T/curl-status"
	example webhook.sh '{"id":7}' WEBHOOK_URL=http://192.0.2.1/in
}
hook 201 0
status 0 'webhook: accepted'
is "$(cat "$T/posted")" '{"id":7}' 'webhook: the message is posted as it is'
like "$(cat "$T/arguments")" '^Idempotency-Key: 7$' 'webhook: with its id as the key'
is "$(tail -n 1 "$T/arguments")" http://192.0.2.1/in 'webhook: to the URL'
hook 422 0
status 65 'webhook: 422 makes a dead letter'
hook 503 0
status 75 'webhook: 503 is retried'
hook 404 0
status 75 'webhook: 404 is retried, because somebody may be deploying'
hook 000 65
status 75 "webhook: curl's own status 65 is retried, and makes no dead letter"
example webhook.sh '{}'
ok '[ "$STATUS" -ne 0 ] && [ "$STATUS" -ne 65 ]' 'webhook: without a URL the message is not made a dead letter'

# -- databases -----------------------------------------------------------------

if command -v sqlite3 >/dev/null; then
	DB=$T/orders.db
	sqlite3 "$DB" 'CREATE TABLE orders (id TEXT PRIMARY KEY, body TEXT NOT NULL);'
	message='{"id":"o'\''7","text":"); DROP TABLE orders; --"}'
	example sqlite.sh "$message" DATABASE="$DB"
	status 0 'sqlite: stored'
	example sqlite.sh "$message" DATABASE="$DB"
	status 0 'sqlite: the same message again succeeds'
	is "$(sqlite3 "$DB" 'SELECT count(*), id, body FROM orders')" "1|o'7|$message" 'sqlite: and is stored once, unchanged'
	example sqlite.sh '{"text":"no id"}' DATABASE="$DB"
	status 65 'sqlite: a message without an id makes a dead letter'
	example sqlite.sh 'no JSON' DATABASE="$DB"
	status 65 'sqlite: so does one that is not JSON'
	example sqlite.sh '' DATABASE="$DB"
	status 65 'sqlite: so does an empty one'
	example sqlite.sh "$message" DATABASE="$T/none/none.db"
	status 75 'sqlite: a missing database is retried'
else
	note 'no sqlite3: sqlite.sh is not run'
fi

if command -v jq >/dev/null; then
	stand_in psql <<'H'
cat >"$T/sql"
cat <&3 >"$T/variable"
exit "$(cat "$T/psql-status")"
H
	echo 0 >"$T/psql-status"
	example postgres.sh '{"id":7,"text":"x"}'
	status 0 'postgres: stored'
	is "$(cat "$T/variable")" '{"id":7,"text":"x"}' 'postgres: psql finds the whole message at descriptor 3'
	like "$(cat "$T/sql")" "^.set message .cat <&3.\$" 'postgres: and takes it from there'
	echo 2 >"$T/psql-status"
	example postgres.sh '{"id":7}'
	status 75 'postgres: a missing database is retried'
	example postgres.sh '[7]'
	status 65 'postgres: a message that is not an object makes a dead letter'
	example postgres.sh '{"id":7}{"id":8}'
	status 65 'postgres: so do two objects'
fi

# -- thumbnail -----------------------------------------------------------------

stand_in convert <<'H'
image=$(cat)
case $image in *bad*) exit 1 ;; esac
printf %s "$image"
H
mkdir -p "$T/images/a b" "$T/small"
echo picture >"$T/images/a b/cat.jpg"
echo 'bad picture' >"$T/images/bad.jpg"
mkdir "$T/private"
echo secret >"$T/private/cat.jpg"
ln -s ../private "$T/images/link"
ln -s ../private/cat.jpg "$T/images/leak.jpg"
ln -s 'a b' "$T/images/album"
thumbnail() { example thumbnail.sh "$1" IMAGES="$T/images" THUMBNAILS="$T/small"; }
thumbnail 'a b/cat.jpg'
status 0 'thumbnail: made'
is "$(cd "$T/small" && find . -type f)" './a b/cat.jpg' 'thumbnail: in its place, and nothing else'
thumbnail album/cat.jpg
status 0 'thumbnail: a link within IMAGES is followed'
rm -r "$T/small/album"
for name in '' /etc/passwd .. ../private/cat.jpg ./../private/cat.jpg link/cat.jpg leak.jpg ../images/bad.jpg 'a b/../bad.jpg' 'a b/..' none.jpg 'a b'; do
	thumbnail "$name"
	status 65 "thumbnail: \"$name\" makes a dead letter"
done
thumbnail bad.jpg
status 65 'thumbnail: a file that is not an image makes a dead letter'
is "$(cd "$T/small" && find . -type f)" './a b/cat.jpg' 'thumbnail: and leaves no file'

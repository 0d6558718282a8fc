#!/bin/sh
# The recipes of doc/cookbook.md for groups, approvals, hold and env_message: their commands are
# typed as they are, their handlers run with stand-ins for the programs that they call.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

DOC=$SRCDIR/doc/cookbook.md
command -v python3 >/dev/null || skip_all 'no python3'
command -v jq >/dev/null || skip_all 'no jq'
redis_start
mkdir "$T/bin" "$T/home" "$T/approved"
chmod 777 "$T/approved"
: >"$T/done" && chmod 666 "$T/done"

# A program that a handler calls: its arguments go to $T/done.
stand_in() {	# NAME [LINE]
	printf '#!/bin/sh\nprintf "%s:%%s\\n" "$*" >>"%s/done"\n%s\n' "$1" "$T" "${2-}" >"$T/bin/$1"
	chmod 755 "$T/bin/$1"
}
program() {	# NAME
	python3 "$SRCDIR/tests/docs/blocks.py" --program "$1" "$DOC" >"$T/$1"
	chmod 755 "$T/$1"
	ok "[ -s '$T/$1' ]" "the document has the program $1"
}
section() { awk -v h="## $1" '/^## / { in_it = $0 == h } in_it' "$DOC"; }	# HEADING
# A queue of a section, with this test's command in place of its own and of its user.
queue() {	# HEADING COMMAND
	section "$1" | sed -n '/^queue "/,/^}/p' | sed "/^    user /d; s|^    command .*|    command = {\"$2\"}|"
}
# Types the commands of a section.
type_in() {	# HEADING
	section "$1" | sed "s|^redis 127.0.0.1:6379|redis unix:$SOCK|" >"$T/section.md"
	python3 "$SRCDIR/tests/docs/blocks.py" --session "$T/session" "$T/section.md" >"$T/blocks" 2>&1
	is $? 0 "$1: its commands" || note "$(cat "$T/blocks")"
	like "$(cat "$T/blocks")" '^ok .*prints what it says' 'print what the document says'
}
printf '#!/bin/sh\nexec %s -s "%s" "$@"\n' "$(command -v redis-cli)" "$SOCK" >"$T/bin/redis-cli"
cat >"$T/session" <<S
#!/bin/sh
HOME=$T/home APPROVED=$T/approved RQD_CONFIG=$T/rqd.conf PATH=$T/bin:$(dirname "$RQCTL"):\$PATH
export HOME APPROVED RQD_CONFIG PATH
exec sh
S
chmod 755 "$T/bin/redis-cli" "$T/session"

for name in approval carrier variables steps; do program "$name"; done
for name in pay-refund print-label charge-card ship-parcel; do stand_in $name; done
# The approval before the second step, as the document says.
sed -n '/^if /,/^fi$/p' "$T/approval" | sed 's/refund/order/' >"$T/if"
sed "/^	ship-parcel/e cat '$T/if'" "$T/steps" >"$T/order"
is "$(grep -c APPROVED "$T/order")" 1 'steps with an approval'
chmod 755 "$T/order"
stand_in curl 'cat "$T/answer"'
sed -i "2i T=$T" "$T/bin/curl"
handler mail <<'H'
echo "mail:$RQD_ID" >>"$T/done"
until [ -e "$T/go" ]; do sleep 0.1; done
H
ENV="env = {\"PATH=$T/bin:$PATH\", \"APPROVED=$T/approved\", \"CARRIER=http://carrier/\"}"
rqd_start <<C
defaults { $AS $ENV }
$(queue 'A limit for each customer' "$T/mail")
queue "refunds" { command = {"$T/approval"} }
queue "orders" { command = {"$T/order"} }
queue "shipping" { command = {"$T/carrier"} }
$(queue 'Members of the message as variables' "$T/variables")
C

# -- groups -----------------------------------------------------------------------------

type_in 'A limit for each customer'
wait_ok 20 '[ "$(sort "$T/done" | tr "\n" " ")" = "mail:a-1 mail:b-1 " ]' 'one mail of each customer has started'
: >"$T/done"
ctl purge -y --held mails >/dev/null
: >"$T/go"
wait_ok 20 '[ "$(log_count "event=acked queue=mails")" -eq 2 ]' 'and is sent'

# -- an approval ------------------------------------------------------------------------

ctl push refunds '{"id":7}' >/dev/null
log_wait 20 'event=deferred queue=refunds id=7 .*waits for an approval'
ok '[ ! -s "$T/done" ]' 'without an approval the refund is not paid'
ctl retry now refunds 7 >/dev/null
log_wait 20 'event=deferred queue=refunds id=7 .*waits for an approval' 2
ok '[ ! -s "$T/done" ]' 'nor if its message is only made due'
type_in 'Wait for an approval'
wait_ok 20 'grep -q "^pay-refund:7$" "$T/done"' 'with an approval it is'
log_wait 20 'event=acked queue=refunds id=7 '
is "$(cat "$T/done")" 'pay-refund:7' 'once'

# Between two steps; retry now does not shorten the three days of the third one.
: >"$T/done"
ctl push orders '{"id":8}' >/dev/null
log_wait 20 'event=deferred queue=orders id=8 .*waits for an approval'
like "$(ctl show orders 8)" '^retry +tag 8, attempt 1, due in [0-9ms]+, saved: ship$' 'the first step is done, the second one waits'
: >"$T/approved/8"
ctl retry now orders 8 >/dev/null
log_wait 20 'event=deferred queue=orders id=8 .*waits for the review'
ctl retry now orders 8 >/dev/null
log_wait 20 'event=deferred queue=orders id=8 .*waits for the review' 2
is "$(tr '\n' ' ' <"$T/done")" 'charge-card:8 ship-parcel:8 ' 'each step ran once'

# -- hold ---------------------------------------------------------------------------------

echo '429 120' >"$T/answer"
ctl push shipping '{"id":1}' >/dev/null
wait_ok 20 'ctl status shipping | grep -qE "held [12]m[0-9]*s? by .*: too many requests"' 'the queue is held as long as the service asks'
ctl push shipping '{"id":2}' >/dev/null
echo '200 ' >"$T/answer"
ctl resume shipping >/dev/null
log_wait 20 'event=acked queue=shipping id=2 '
is "$(log_count 'event=acked queue=shipping id=1 ')" 0 'after a resume the next message runs, and not the first one'
ctl retry now shipping --all >/dev/null
wait_ok 20 '[ "$(log_count "event=acked queue=shipping id=1 ")" -eq 1 ]' 'which retry now makes due'
echo '429 Wed, 21 Oct 2026 07:28:00 GMT' >"$T/answer"
ctl push shipping '{"id":3}' >/dev/null
wait_ok 20 'ctl status shipping | grep -qE "held ([0-9.]+s|1m0?s?) by "' 'a date is a minute'
echo '500 ' >"$T/answer"
ctl resume shipping >/dev/null
ctl push shipping '{"id":4}' >/dev/null
wait_ok 20 '[ "$(log_count "event=retry queue=shipping id=4 .*status=75")" -ge 1 ]' 'another answer is a failure'

# -- variables ------------------------------------------------------------------------------

: >"$T/done"
ctl push parcels '{"id":7,"to":"Bonn","weight":1.5}' >/dev/null
ctl push parcels '{"id":8,"to":"Rome; ls"}' >/dev/null
ctl push parcels '{"id":9,"to":null}' >/dev/null
log_wait 20 'event=(acked|dead) queue=parcels' 3
is "$(cat "$T/done")" 'print-label:--weight 1.5 -- Bonn
print-label:--weight 1 -- Rome; ls' 'members of the message are variables'
is "$(log_count 'event=dead queue=parcels id=9 .*status=65')" 1 'a missing one can be noticed'

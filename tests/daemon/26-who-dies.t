#!/bin/sh
# How far a death spreads: kill -9 of the main process, of its helper (the child that runs
# no command), of both at once, and of the main process while its helper is stopped; with
# handlers of each sort, as each user.  No handler runs on, and none runs beside the next
# delivery of its message.

# shellcheck source=tests/lib.sh disable=SC2046
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

command -v setsid >/dev/null || skip_all 'no setsid'
redis_start
mkdir -m 777 "$T/out"

# A message's id says what sort of handler it gets.  All processes of a handler hold its lock,
# but those with a session of their own.
handler work <<'H'
m=$T/out/$RQD_QUEUE.$RQD_ID
exec 9>>"$m.lock"
flock -n 9 || echo "$RQD_ID" >>"$T/out/$RQD_QUEUE.beside"
[ ! -e "$m" ] || { echo "$RQD_ID" >>"$T/out/$RQD_QUEUE.again"; exit 0; }
more=''
case $RQD_ID in
child) sleep 1000 & more=$! ;;
group) set -m; sleep 1000 & more=$!; set +m ;;
double) more=$(sleep 1000 >/dev/null & echo $!) ;;
session) setsid sleep 1000 9>&- & more=$! ;;
deaf) trap '' TERM ;;
esac
echo $$ $more >"$m.new"
mv "$m.new" "$m"
[ "$RQD_ID" != stopped ] || kill -STOP $$
exec sleep 1000
H
SORTS='plain deaf stopped child group double session'
DIRECT='plain deaf stopped'	# the process that rqd starts, and no other

ids() { for _s in ${2:-$SORTS}; do cat "$T/out/$1.$_s" 2>/dev/null; done | tr '\n' ' '; }	# NAME [SORTS]
alive() { for _p; do is_alive "$_p" && echo "$_p"; done; }
# Of the children of the main process, those that are no handlers.
helpers() {	# NAME
	for _p in $(pgrep -P "$(pid_of "$1")"); do
		case " $(ids "$1")" in *" $_p "*) ;; *) is_alive "$_p" && echo "$_p" ;; esac
	done
}
conf() {	# USER-LINE QUEUE...
	echo "defaults { $1 command = {\"$T/work\"} concurrency = 8 lease = 5s }"
	shift
	for _q; do echo "queue \"$_q\" { }"; done
}

# -- a daemon for each user and each death ------------------------------------------
# USER_DEATH is the name of a daemon, and of its queue.
NAMES=''
daemons() {	# USER USER-LINE [ARGUMENT...]
	user=$1 line=$2
	shift 2
	for death in main helper both stopped; do
		name=${user}_$death
		NAMES="$NAMES $name"
		conf "$line" "$name" >"$T/text"
		rqd_start "$name" "$@" <"$T/text"
		r lpush "$name" $(printf '{"id":"%s"} ' $SORTS) >/dev/null
	done
}
if [ "$(id -u)" -eq 0 ]; then
	daemons other 'user = "daemon"'
	daemons root 'user = "root"'
	daemons single 'user = "_rqd"' -o privileged=false
	mkdir -m 755 "$T/bin"
	cp "$RQD" "$T/bin/rqd"
	rqd=$RQD wrapper=$RQD_WRAPPER
	RQD=$T/bin/rqd RQD_WRAPPER="setpriv --reuid 65534 --regid 65534 --clear-groups $RQD_WRAPPER"
	umask 0
	AS='' daemons plain ''
	umask 022
	RQD=$rqd RQD_WRAPPER=$wrapper
else
	daemons plain ''
fi
for name in $NAMES; do
	wait_for 15 '[ "$(ids "$name" | wc -w)" -eq 11 ]'
	is "$(alive $(ids "$name") | wc -l)" 11 "$name: handlers of each sort run" || exit
	eval "H_$name=\$(helpers $name)"
	is "$(helpers "$name" | wc -l)" 1 "$name: the main process has one helper"
	stopped=$(ids "$name" stopped)
	wait_for 10 'grep -q "^State:.T" "/proc/${stopped% }/status"'
done

# -- they die -----------------------------------------------------------------------
for name in $NAMES; do
	eval "helper=\$H_$name"
	case $name in
	*_main) rqd_kill9 "$name" ;;
	*_both)
		kill -KILL "$(pid_of "$name")" "$helper"
		rqd_wait "$name"
		;;
	*_stopped)
		kill -STOP "$helper"
		rqd_kill9 "$name"
		kill -CONT "$helper"
		;;
	*_helper)
		kill -KILL "$helper"
		# It ends, or goes on with another one: then nothing happens to its handlers.
		wait_for 10 '! is_alive "$helper"'
		wait_for 10 '! is_child "$(pid_of "$name")" || [ -n "$(helpers "$name")" ]'
		if is_child "$(pid_of "$name")"; then
			is "$(alive $(ids "$name") | wc -l)" 11 "$name: the daemon has another helper, and its handlers"
			rqd_kill9 "$name"
		else
			rqd_wait "$name"
			is "$STATUS" 71 "$name: the daemon ends with status 71"
		fi
		;;
	esac
done

# The next delivery.
conf "$AS" $NAMES >"$T/text"
rqd_start next <"$T/text"

# After the death of the helper a process may live on that is not a child of rqd's; the service
# manager ends it.  A main process of the handlers' own user inherits it, and kills it.
for name in $NAMES; do
	case $name in
	single_helper | plain_helper) sure=$SORTS ;;
	*_both | *_helper) sure=$DIRECT ;;
	*) sure=$SORTS ;;
	esac
	pids=$(ids "$name" "$sure")
	wait_for 10 '[ -z "$(alive $pids)" ]'
	is "$(alive $pids)" '' "$name: its handlers have ended ($sure)"
	for sort in $SORTS; do
		[ -z "$(alive $(ids "$name" $sort))" ] || note "$name: $sort runs on"
	done
	eval "sure_$name=\$sure"
done
wait_ok 30 'no_keys' 'the messages are delivered again'
for name in $NAMES; do
	is "$(sort "$T/out/$name.again" | tr '\n' ' ')" "$(printf '%s\n' $SORTS | sort | tr '\n' ' ')" \
	    "$name: each message once"
	[ ! -e "$T/out/$name.beside" ] || note "$name: beside its handler: $(tr '\n' ' ' <"$T/out/$name.beside")"
	eval "sure=\$sure_$name"
	ok "! grep -qwF '$(printf '%s\n' $sure)' '$T/out/$name.beside' 2>/dev/null" "$name: none beside its handler"
done
rqd_stop next
for pid in $(our_processes); do kill -KILL "$pid"; done

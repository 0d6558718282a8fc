#!/bin/sh
# The handler of several steps in doc/cookbook.md: it is killed between any two of its lines, or
# its daemon is.  Each step runs once, but for the one that was under way.

# shellcheck source=tests/lib.sh disable=SC2016
. "${SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/lib.sh"

DOC=$SRCDIR/doc/cookbook.md
command -v python3 >/dev/null || skip_all 'no python3'
command -v jq >/dev/null || skip_all 'no jq'
redis_start
mkdir "$T/bin" "$T/steps"
for step in charge-card ship-parcel ask-for-review; do
	printf '#!/bin/sh\necho "%s" >>"%s/$1"\n' $step "$T/steps" >"$T/bin/$step"
done
# The handler's clock stands until each message waits for the review.
printf '#!/bin/sh\ncat "%s/clock"\n' "$T" >"$T/bin/date"
chmod 755 "$T"/bin/*
chmod 777 "$T/steps"

# The same lines, with a point between any two, at which the first run dies; three days are a
# second here.  A message's id is the number of its point.
echo 1000 >"$T/clock"
python3 "$SRCDIR/tests/docs/blocks.py" --program steps "$DOC" | awk '
/3 \* 86400/ { days++; sub(/3 \* 86400/, "1") }
NR > 3 && !/^fi$/ && NF > 0 { print "point " ++n }
{ print }
NR == 3 { print "point() { [ \"$order\" != \"$1\" ] || [ -e \"$T/at.$order\" ] || { : >\"$T/at.$order\"; sleep 0.1; kill -9 $WHOM; sleep 10; }; }" }
END { print "point " ++n; if (days != 1) exit 1 }' >"$T/body"
is $? 0 'the handler waits for three days'
POINTS=$(sed -n 's/^point \([0-9]*\)$/\1/p' "$T/body" | tail -n 1)
ok '[ "$POINTS" -ge 14 ]' "it has $POINTS points"
sed 's/^\(#!.*\)/\1\nPATH='"$(printf %s "$T/bin" | sed 's|/|\\/|g')"':$PATH T='"$(printf %s "$T" | sed 's|/|\\/|g')"' WHOM=$$/' "$T/body" >"$T/durable"
# The daemon gets time to save.
sed 's/WHOM=\$\$/WHOM=$(cat "$T\/daemon.$RQD_QUEUE")/; s/sleep 0.1/sleep 1/' "$T/durable" >"$T/lonely"
chmod 755 "$T/durable" "$T/lonely"

# Whether all messages wait for the review, or have; NAME-OF-LOG, or "": each has its own.
all_deferred() {
	for i in $(seq "$POINTS"); do
		[ "$(log_count "event=deferred queue=[^ ]* id=$i " "${1:-d$i}")" -ge 1 ] || return 1
	done
}
# The steps of a message: each once; the last one that had begun when it died may be twice.
steps() {	# ID
	uniq -c "$T/steps/$1" 2>/dev/null | awk '{ printf "%s%s", $2, ($1 > 1 ? "*" $1 : "") " " }' | sed 's/ $//'
}
judge() {	# ID WHAT
	case $(steps "$1") in
	'charge-card ship-parcel ask-for-review') ;;
	'charge-card*2 ship-parcel ask-for-review' | 'charge-card ship-parcel*2 ask-for-review' | \
	'charge-card ship-parcel ask-for-review*2') again="$again $1" ;;
	*) wrong="$wrong $1: $(steps "$1");" ;;
	esac
}

# -- kill -9 of the handler ----------------------------------------------------------

# Saved at once: a step runs again only at the point right behind its command, or behind it and
# the line that computes what to save.
rqd_start one <<C
queue "q" { command = {"$T/durable"} concurrency = 20 backoff = 100ms suspend_after = 0 $AS }
C
for i in $(seq "$POINTS"); do r lpush q "{\"id\":$i}" >/dev/null; done
wait_ok 60 'all_deferred one' 'each message waits for the review'
is "$(cat "$T"/steps/* | grep -c review)" 0 'which nobody has asked for'
echo 1001 >"$T/later" && mv "$T/later" "$T/clock"
wait_ok 60 '[ "$(log_count "event=acked queue=q" one)" -eq "$POINTS" ]' 'each message is done'
wrong='' again=''
for i in $(seq "$POINTS"); do judge "$i"; done
is "$wrong" '' 'each step ran once, or is the one that was under way'
behind=$(awk '/^point/ { n = $2; next } /^\t(charge-card|ship-parcel)/ { print n + 1; print n + 2 } /^ask-for-review/ { print n + 1 }' "$T/body" | tr '\n' ' ')
is "$again" " ${behind% }" 'only a step that was under way ran again'
is "$(log_count 'event=retry .*signal=SIGKILL' one)" "$POINTS" 'each handler was killed'
rqd_stop one
wait_ok 10 'no_keys' 'no text is left'

# -- kill -9 of rqd: each point has a daemon of its own --------------------------------

rm -f "$T"/at.* "$T"/steps/*
echo 1000 >"$T/clock"
conf() {	# NUMBER
	cat <<C
queue "q$1" { command = {"$T/lonely"} lease = 3s backoff = 100ms suspend_after = 0 $AS }
C
}
for i in $(seq "$POINTS"); do
	conf "$i" | config_write "d$i"
	QUEUES="$QUEUES q$i"
	rqd_spawn "d$i" -c "$T/d$i.conf"
	echo "$PID" >"$T/daemon.q$i"
	r lpush "q$i" "{\"id\":$i}" >/dev/null
done
revive() {	# NUMBER
	n=$1
	wait_for 60 '[ -e "$T/at.$n" ] && ! is_alive "$(cat "$T/daemon.q$n")"'
	rqd_wait "d$n"
	rqd_spawn "d$n" -c "$T/d$n.conf"
	echo "$PID" >"$T/daemon.q$n"
}
# The last two points are behind the review.
for i in $(seq $((POINTS - 2))); do revive "$i"; done
wait_ok 90 all_deferred 'each message waits for the review'
echo 1001 >"$T/later" && mv "$T/later" "$T/clock"
for i in $((POINTS - 1)) "$POINTS"; do revive "$i"; done
all_acked() {
	for i in $(seq "$POINTS"); do [ "$(log_count event=acked "d$i")" -eq 1 ] || return 1; done
}
wait_ok 90 all_acked 'each message is done, by another daemon'
wrong='' again=''
for i in $(seq "$POINTS"); do judge "$i"; done
is "$wrong" '' 'each step ran once, or is the one that was under way'
for i in $(seq "$POINTS"); do rqd_stop "d$i"; done
wait_ok 10 'no_keys' 'no text is left'

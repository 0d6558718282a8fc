#!/bin/sh
# Posts the message, as it is, to a URL.
#
#	queue "hooks" {
#	    command     = {"/usr/local/bin/webhook.sh"}
#	    user        = "hooks"
#	    env         = {"WEBHOOK_URL=https://example.org/in"}
#	    concurrency = 4
#	    time_limit  = 1m
#	}
#
# WEBHOOK_URL	where to
# WEBHOOK_TYPE	Content-Type (application/json)

set -u

code=$(curl --silent --show-error --max-time 30 --output /dev/null \
    --write-out '%{http_code}' \
    --header "Content-Type: ${WEBHOOK_TYPE:-application/json}" \
    --header "Idempotency-Key: $RQD_ID" \
    --data-binary @- -- "${WEBHOOK_URL:?}")
case $? in
0) ;;
126 | 127) exit 127 ;;			# no curl: nothing is wrong with the message
*) exit 75 ;;				# curl has printed the reason; its 65 means something else
esac

case $code in
2??) exit 0 ;;
# The other side rejects the message itself: it will do so again, so do not retry.
400 | 410 | 413 | 415 | 422)
	echo "refused with status $code" >&2
	exit 65
	;;
*)
	echo "status $code" >&2
	exit 75
	;;
esac
